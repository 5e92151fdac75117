"""Opinions are found by entry point, loaded once, and none is there by itself."""

from importlib.metadata import EntryPoint
from typing import Any

import msgspec
import pytest

from gateway.control import opinion_plugins
from gateway.control.opinion_plugins import GROUP, asked_by, installed, load
from tests.unit.core.test_mirror import BASE


class Fake:
    """A plug-in's factory that counts its calls."""

    made = 0

    def __init__(self) -> None:
        Fake.made += 1


def test_none_is_built_in() -> None:
    """The gateway's own distribution offers none, so none weighs unless somebody installs it."""
    assert installed() == frozenset()
    load.cache_clear()
    assert load("embedding") is None


def test_an_installed_one_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model takes long to load: the process keeps it."""
    offered = [EntryPoint("embedding", f"{__name__}:Fake", GROUP)]

    def found(*, group: str, name: str = "") -> list[EntryPoint]:
        return [entry for entry in offered if entry.group == group and name in ("", entry.name)]

    monkeypatch.setattr(opinion_plugins, "entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Fake)
    load.cache_clear()
    assert installed() == {"embedding"}
    first: Any = load("embedding")
    assert isinstance(first, Fake)
    assert load("embedding") is first
    assert Fake.made == 1
    assert load("judge") is None
    load.cache_clear()


def test_what_a_rule_asks_for() -> None:
    """Off by default."""
    assert asked_by(BASE) == ()
    assert asked_by(msgspec.structs.replace(BASE, embedding=True, judge=True)) == ("embedding", "judge")
