"""The systemd unit is accepted, stops the gateway as the gateway wants to be stopped, and confines it."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.app.supervisor import CONTROL_STOP_S, WORKER_STOP_S, Exit
from gateway.cli.serve import serve
from tests.deploy.conftest import DEPLOY

UNIT = DEPLOY / "systemd" / "quantgate.service"


def service() -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return dict(parser["Service"])


def test_what_cannot_heal_is_not_restarted() -> None:
    """The exit statuses of a rejected policy and a taken port are the ones named."""
    assert service()["RestartPreventExitStatus"].split() == [str(int(Exit.POLICY)), str(int(Exit.ADDRESS))]


def test_there_is_time_to_drain_and_only_the_supervisor_is_signalled() -> None:
    """Workers finish their requests first; a signal to all of them would skip the order."""
    assert service()["KillMode"] == "mixed"
    assert float(service()["TimeoutStopSec"]) > 30 + WORKER_STOP_S + CONTROL_STOP_S


def test_the_command_has_only_known_options() -> None:
    """Each option is one of ``quantgate serve``, and what it writes lies where the unit lets it write."""
    words = service()["ExecStart"].split()
    options = dict(zip(words[2::2], words[3::2], strict=True))
    known = {f"--{name.replace('_', '-')}" for name in serve.__annotations__ if name != "return"}
    assert options.keys() <= known
    assert options["--state-dir"] == f"/var/lib/{service()['StateDirectory']}"
    assert str(Path(options["--access-log"]).parent) == f"/var/log/{service()['LogsDirectory']}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_it(tmp_path: Path) -> None:
    """``systemd-analyze verify`` has nothing to say, and its judgement of the exposure is good."""
    copy = tmp_path / "quantgate.service"
    copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.MULTILINE))
    verify = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert (verify.returncode, verify.stderr) == (0, "")
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert security.returncode == 0, security.stdout[-300:]
