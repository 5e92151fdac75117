"""The parts of a run that need no server; the whole is tested from outside (``tests/e2e/test_demo.py``)."""

import io
import os
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.console import Console

from gateway.demo import run as module
from gateway.demo.fleet import FleetError
from gateway.demo.interrupt import Interrupts
from gateway.demo.policy import DemoPolicyError
from gateway.demo.run import Options, demo
from gateway.demo.screen import Screen
from gateway.demo.weights import WeightsError


def attempt(options: Options) -> str:
    """What is printed until the demo gives up."""
    out = io.StringIO()
    with Interrupts() as interrupts:
        try:
            demo(options, Screen(Console(file=out)), interrupts)
        except (WeightsError, DemoPolicyError, FleetError):
            return out.getvalue()
    raise AssertionError("it did not give up")


def test_nothing_is_left_where_the_weights_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error comes out as itself, and no folder was made."""

    def none(*_: object) -> None:
        raise WeightsError("no network")

    monkeypatch.setattr(module, "obtain", none)
    assert "pools" not in attempt(Options(folder=tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


def test_a_missing_policy_ends_it_before_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no policy nothing is downloaded or started."""

    def none() -> Path:
        raise DemoPolicyError("run it in a checkout")

    monkeypatch.setattr(module, "find_policy", none)
    monkeypatch.setattr(module, "obtain", None)
    assert attempt(Options()) == ""


def test_a_folder_of_ones_own_stays(tmp_path: Path) -> None:
    """A given folder is made and kept, a temporary one is gone at the end."""
    with ExitStack() as stack:
        own = module._folder(Options(folder=tmp_path / "a" / "b"), stack)
        passing = module._folder(Options(), stack)
        assert passing.is_dir()
    assert own.is_dir()
    assert not passing.exists()


@pytest.mark.parametrize("late_files", [0, 3])
def test_a_process_that_dies_late_does_not_keep_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, late_files: int
) -> None:
    """What it writes while the folder is being removed is removed as well, and is no error."""
    folder = tmp_path / "passing"
    (folder / "state").mkdir(parents=True)
    really, left = shutil.rmtree, [late_files]

    def rmtree(path: Path, **options: bool) -> None:
        really(path, **options)
        if left[0]:
            left[0] -= 1
            (path / "state").mkdir(parents=True)

    monkeypatch.setattr(module.shutil, "rmtree", rmtree)
    module._remove(folder)
    assert not folder.exists()


def test_a_folder_that_cannot_be_removed_does_not_hold_the_demo_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After a while it is left."""
    monkeypatch.setattr(module, "GONE_S", 0.0)
    monkeypatch.setattr(module.shutil, "rmtree", lambda path, **_: None)
    module._remove(tmp_path)
    assert tmp_path.exists()


def test_the_second_parts_policy_is_missed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not when the first part is over; who wants the first part alone does not need it."""
    wanted = []

    def find(name: str = "demo.yaml") -> Path:
        wanted.append(name)
        if name != "demo.yaml":
            raise DemoPolicyError("run it in a checkout")
        return Path("routing_policies") / name

    def none(*_: object) -> None:
        raise WeightsError("no network")

    monkeypatch.setattr(module, "find_policy", find)
    monkeypatch.setattr(module, "obtain", none)
    assert attempt(Options()) == ""
    assert "Quantgate demo" in attempt(Options(rollout=False))
    assert wanted == ["demo.yaml", "demo-rollout.yaml", "demo.yaml"]


def test_while_things_are_stopped_a_signal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second Ctrl-C, or one after an error, does not leave half of the processes behind."""
    stopped = []

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        stopped.append(True)

    def set_up(options: Options, screen: Screen, stack: ExitStack, before_exec: object) -> None:
        del options, screen, before_exec
        stack.callback(stop)
        raise FleetError("a server did not start")

    monkeypatch.setattr(module, "_set_up", set_up)
    assert attempt(Options()) == ""
    assert stopped == [True]
