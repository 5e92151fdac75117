"""Secrets by reference."""

from pathlib import Path

import pytest

from gateway.policy.secret import SecretError, SecretReader, secrets_of, unresolved


def test_env_and_file_are_resolved(tmp_path: Path) -> None:
    """White space around the value is no part of it; files are looked up from the base."""
    (tmp_path / "key").write_text("from-file\n")
    resolve = secrets_of({"KEY": " from-env "}, tmp_path)
    assert resolve("env:KEY") == "from-env"
    assert resolve("file:key") == "from-file"
    assert resolve(f"file:{tmp_path / 'key'}") == "from-file"


@pytest.mark.parametrize(
    "reference", ["env:GONE", "file:gone", "file:binary", "file:empty", "env:LINES", "sk-literal", "file:."]
)
def test_what_cannot_be_resolved_is_named_without_its_value(reference: str, tmp_path: Path) -> None:
    """Unset, missing, not text, empty, more than a line: the reference is in the message, the secret never."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_text(" \n")
    with pytest.raises(SecretError) as caught:
        secrets_of({"LINES": "hunter2\nmore"}, tmp_path)(reference)
    assert "hunter2" not in str(caught.value)
    assert "literal" not in str(caught.value)
    assert reference in str(caught.value) or reference == "sk-literal"


def test_a_stand_in_differs_by_reference() -> None:
    """Checks that need no secret still see that two keys are two."""
    assert unresolved("env:A") != unresolved("env:B")


def test_what_cannot_be_resolved_is_remembered_with_its_place() -> None:
    """All of it: a person mends a file once."""
    reader = SecretReader(secrets_of({"A": "a"}, Path()), "policy")
    assert [reader.read(f"env:{name}", f"pools.{name}.api_key") for name in "ABC"] == ["a", None, None]
    assert [finding.message.partition(":")[0] for finding in reader.findings] == ["pools.B.api_key", "pools.C.api_key"]
    assert all(finding.mend for finding in reader.findings)
