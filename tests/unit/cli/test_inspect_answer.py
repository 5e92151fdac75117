"""``quantgate inspect``: what it prints, what it returns, and how it refuses a file."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway import cli
from gateway.cli.inspect_answer import run

REQUEST = {"messages": [{"role": "user", "content": "Only JSON."}], "response_format": {"type": "json_object"}}


def answer(text: str) -> str:
    """A chat body."""
    return json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Paths of a good request and of an answer that each test writes."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps(REQUEST))
    return request, tmp_path / "answer.json"


def test_a_good_answer(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and every check is accounted for in words."""
    files[1].write_text(answer('{"a": 1}'))
    assert run(*files, False) == 0
    printed = capsys.readouterr().out
    assert "pass  json " in printed
    assert "nothing failed; score 1.00" in printed
    assert "nothing to judge for: schema" in printed


def test_a_broken_answer(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1; the check, its reason, its place and a piece of evidence come first."""
    files[1].write_text(answer('{"a": one}'))
    assert run(*files, False) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("FAIL  json ")
    assert "at character 6; counts as format_error" in lines[3]
    assert "one" in lines[4]


def test_json_output(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the whole inspection is one JSON object."""
    files[1].write_text(answer('{"a": one}'))
    assert run(*files, True) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["failures"] == ["format_error"]
    assert printed["ok"] is False
    failed = [finding for finding in printed["findings"] if finding["verdict"] == "fail"]
    assert [(finding["check"], finding["start"]) for finding in failed] == [("json", 6)]


def test_event_streams_are_recognised(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A raw stream needs no flag; one that broke off is a finding, not bad input."""
    chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": '{"a": 1}'}, "finish_reason": None}]})
    files[1].write_text(f": hi\r\n\r\ndata:{chunk}\r\n\r\n")
    assert run(*files, False) == 1
    printed = capsys.readouterr().out
    assert "event stream" in printed
    assert "FAIL  truncation" in printed


def test_several_choices_are_told_apart(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """With n=2 each line names its choice."""
    choices = [
        {"index": n, "message": {"content": text}, "finish_reason": "stop"} for n, text in enumerate(("{}", "{"))
    ]
    files[1].write_text(json.dumps({"choices": choices}))
    assert run(*files, False) == 1
    assert "[choice 1]" in capsys.readouterr().out.splitlines()[2]


@pytest.mark.parametrize(
    ("content", "place", "mend"),
    [
        ('{"choices": [\n  {"a": }]}', "answer.json:2:9: error: no JSON", "whole JSON body or the raw event stream"),
        ("", "answer.json:1:1: error: the file is empty", "give the pool's answer"),
        ("[1]", "answer.json:1:1: error: this is JSON, but no object", "give the pool's answer"),
        ("<html>", "answer.json:1:1: error: no JSON", "give the pool's answer"),
    ],
)
def test_bad_answer_files(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], content: str, place: str, mend: str
) -> None:
    """Exit code 2, nothing on stdout, and the place and the mend on stderr."""
    files[1].write_text(content)
    assert run(*files, False) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert place in printed.err
    assert mend in printed.err


def test_bad_request_file(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The request is checked first, and says what it should hold."""
    files[0].write_text('{"messages": [}')
    assert run(*files, False) == 2
    assert "request.json:1:15: error: no JSON" in capsys.readouterr().err


def test_missing_file(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A path that leads nowhere is bad input, not a traceback."""
    assert run(*files, False) == 2
    assert "answer.json:1:1: error: cannot be read: No such file" in capsys.readouterr().err


def test_the_command_hands_on_the_exit_code(files: tuple[Path, Path]) -> None:
    """As typed by a person: ``quantgate inspect REQUEST ANSWER`` ends with the same code."""
    files[1].write_text(answer("no"))
    ended = CliRunner().invoke(cli.app, ["inspect", str(files[0]), str(files[1])], prog_name="quantgate")
    assert ended.exit_code == 1
    assert "FAIL  json" in ended.output
