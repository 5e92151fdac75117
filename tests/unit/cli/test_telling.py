"""Commands speak JSON to programs, and give up in one way."""

import io
import json

import pytest
import typer

from gateway.cli.telling import UNUSABLE, give_up, print_json


def test_json_goes_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output if nowhere else; one value, ended by a line."""
    stream = io.StringIO()
    print_json({"a": ["ä"]}, stream)
    print_json([1])
    assert stream.getvalue().endswith("}\n")
    assert json.loads(stream.getvalue()) == {"a": ["ä"]}
    assert json.loads(capsys.readouterr().out) == [1]


def test_who_gives_up_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """With the command's name, on standard error, and a status of its own."""
    with pytest.raises(typer.Exit) as ended:
        give_up("report", ValueError("no database"))
    assert ended.value.exit_code == UNUSABLE
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "quantgate report: no database\n")
