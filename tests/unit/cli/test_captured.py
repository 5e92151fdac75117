"""Captured files: what is wrong with one is said with its place and a mend."""

from pathlib import Path

import pytest

from gateway.cli.captured import REQUEST_MEND, BadInputError, read_bytes, read_object


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"", "1:1", "empty"),
        (b" \n", "1:1", "empty"),
        (b"[1]", "1:1", "no object"),
        (b'{"a": 1,\n  "b": }', "2:8", "no JSON"),
    ],
)
def test_what_is_no_object_is_said_with_its_place(tmp_path: Path, content: bytes, place: str, message: str) -> None:
    """The mend says what the file should be."""
    file = tmp_path / "request.json"
    file.write_bytes(content)
    with pytest.raises(BadInputError, match=message) as caught:
        read_object(file, REQUEST_MEND)
    finding = caught.value.finding
    assert (finding.file, f"{finding.line}:{finding.column}", finding.mend) == (str(file), place, REQUEST_MEND)


def test_an_object_is_read_with_all_its_digits(tmp_path: Path) -> None:
    """As the checks need it."""
    file = tmp_path / "request.json"
    file.write_bytes(b'{"seed": 12345678901234567890123}')
    assert str(read_object(file, REQUEST_MEND)["seed"]) == "12345678901234567890123"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder is none."""
    with pytest.raises(BadInputError, match="cannot be read"):
        read_bytes(tmp_path)
