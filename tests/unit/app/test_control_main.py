"""The control process on its own: what its command line and its end promise. Its life is in ``test_supervisor``."""

import os
import subprocess
import sys

import pytest

from gateway.app.control_main import main


def argv(tmp_path, **changed):
    """A full command line."""
    options = {
        "config": str(tmp_path / "policy.yaml"),
        "admin": "127.0.0.1:0",
        "control-socket": str(tmp_path / "s"),
        "state-dir": str(tmp_path / "state"),
        "workers": "1",
        "access-log": "off",
        **changed,
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def run(arguments, **options):
    """The process, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gateway.app.control_main", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_without_a_valid_policy_it_ends_with_the_findings(tmp_path):
    """Exit code 2; the place of each fault on its own line; no socket was opened."""
    (tmp_path / "policy.yaml").write_text("version: 1\nmodels: []\n")
    ended = run(argv(tmp_path))
    assert ended.returncode == 2
    assert f"{tmp_path / 'policy.yaml'}:" in ended.stderr
    assert not (tmp_path / "s").exists()


def test_a_taken_admin_port_is_an_address_error(tmp_path, policy_text, taken_port):
    """Exit code 3 and one line."""
    (tmp_path / "policy.yaml").write_text(policy_text())
    ended = run(argv(tmp_path, admin=f"127.0.0.1:{taken_port}"))
    assert ended.returncode == 3
    assert f"--admin 127.0.0.1:{taken_port}" in ended.stderr


def test_an_access_log_that_cannot_be_written_is_one_line(tmp_path, policy_text):
    """Exit code 1, the option, and what to give instead."""
    (tmp_path / "policy.yaml").write_text(policy_text())
    ended = run(argv(tmp_path, **{"access-log": str(tmp_path)}))
    assert ended.returncode == 1
    assert f"quantgate: --access-log {tmp_path} cannot be written: Is a directory; name a file" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_missing_secret_is_a_finding(tmp_path, policy_text):
    """The reference is named, and that it must be set where the gateway runs."""
    text = policy_text().replace("{anonymous: {allow: true}}", '{acme: {keys: ["env:NO_SUCH_KEY"]}}')
    (tmp_path / "policy.yaml").write_text(text)
    ended = run(argv(tmp_path), env={key: value for key, value in os.environ.items() if key != "NO_SUCH_KEY"})
    assert ended.returncode == 2
    assert "NO_SUCH_KEY" in ended.stderr


def test_an_admin_address_that_is_none_is_told(tmp_path, capsys):
    """Before anything is opened."""
    assert main(argv(tmp_path, admin="nonsense")) == 3
    assert "--admin" in capsys.readouterr().err


def test_a_state_directory_that_cannot_be_made_is_an_error(tmp_path):
    """It is not silently left out."""
    (tmp_path / "policy.yaml").write_text("")
    (tmp_path / "file").write_text("")
    ended = run(argv(tmp_path, **{"state-dir": str(tmp_path / "file" / "state")}))
    assert ended.returncode not in (0, 2)
    assert "file" in ended.stderr


@pytest.mark.parametrize("missing", ["--config", "--admin", "--control-socket", "--state-dir", "--workers"])
def test_every_option_that_has_no_safe_default_is_required(tmp_path, missing, capsys):
    """The supervisor gives them all."""
    arguments = argv(tmp_path)
    at = arguments.index(missing)
    del arguments[at : at + 2]
    with pytest.raises(SystemExit):
        main(arguments)
    assert missing in capsys.readouterr().err
