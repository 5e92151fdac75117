"""The command's exit statuses and words; what it runs is tested from outside (``tests/e2e/test_demo.py``)."""

import signal
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli import demo as command
from gateway.demo.fleet import FleetError
from gateway.demo.interrupt import Interrupted
from gateway.demo.run import Options
from gateway.demo.weights import WeightsError


def invoke(*arguments: str) -> Any:
    """The command as a person types it."""
    return CliRunner().invoke(app, ["demo", *arguments], env={"COLUMNS": "200"})


def stand_in(monkeypatch: pytest.MonkeyPatch, outcome: BaseException | bool) -> list[Options]:
    """In place of the demo itself: its end, and what it was asked for."""
    asked: list[Options] = []

    def run(options: Options, *_: object) -> object:
        asked.append(options)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(command, "run", run)
    return asked


def test_options_reach_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is what is run; left out, there is a worker for every core and any free port."""
    asked = stand_in(monkeypatch, outcome=True)
    assert invoke().exit_code == 0
    assert invoke("--requests", "40", "--seed", "3", "--keep", "--workers", "1").exit_code == 0
    default, chosen = asked
    assert (default.requests, default.listen, default.folder, default.keep) == (72, "127.0.0.1:0", None, False)
    assert default.workers >= 1
    assert (chosen.requests, chosen.seed, chosen.keep, chosen.workers) == (40, 3, True, 1)


@pytest.mark.parametrize(("good", "status"), [(True, 0), (False, 1)])
def test_a_check_that_fails_is_the_status(monkeypatch: pytest.MonkeyPatch, good: bool, status: int) -> None:
    """A log can be ignored, a status cannot."""
    stand_in(monkeypatch, good)
    assert invoke().exit_code == status


@pytest.mark.parametrize("error", [WeightsError("check the network [now]"), FleetError("check the network [now]")])
def test_what_cannot_be_done_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """One message as the part gave it, brackets and all, and no trace of Python."""
    stand_in(monkeypatch, error)
    done = invoke()
    assert done.exit_code == 1
    assert "The demo cannot go on: check the network [now]" in done.output


def test_a_signal_is_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell reports it."""
    stand_in(monkeypatch, Interrupted(signal.SIGINT))
    done = invoke()
    assert done.exit_code == 130
    assert "stopped" in done.output


@pytest.mark.parametrize("arguments", [("--requests", "3"), ("--listen", "x:y"), ("--admin", "127.0.0.1:99999")])
def test_wrong_usage_starts_nothing(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, str]) -> None:
    """Status 2, and the option is named."""
    asked = stand_in(monkeypatch, outcome=True)
    assert invoke(*arguments).exit_code == 2
    assert asked == []
