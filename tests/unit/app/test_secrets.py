"""The secrets of a process."""

import pytest

from gateway.app.secrets import Secrets
from gateway.policy.secret import SecretError


def test_references_are_read_and_files_are_remembered(tmp_path):
    """Control watches the files that a policy named, also those that cannot be read yet."""
    (tmp_path / "key").write_text("s3cret\n")
    secrets = Secrets({"KEY": "from-env"}, tmp_path)
    assert secrets.read("env:KEY") == "from-env"
    assert secrets.read("file:key") == "s3cret"
    with pytest.raises(SecretError):
        secrets.read("file:later")
    assert secrets.files == {tmp_path / "key", tmp_path / "later"}


def test_a_reference_is_read_anew_each_time(tmp_path):
    """A rotated key is the new one."""
    secrets = Secrets({}, tmp_path)
    for value in ("one", "two"):
        (tmp_path / "key").write_text(value)
        assert secrets.read("file:key") == value


@pytest.mark.parametrize("reference", ["env:NOPE", "nonsense", "http://x"])
def test_what_is_no_secret_is_refused_by_its_reference(reference):
    """The process's environment is not searched for anything else."""
    with pytest.raises(SecretError):
        Secrets({}).read(reference)
