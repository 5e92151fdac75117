"""Whoever is given to a connection as its listener hears everything that a connection says."""

import inspect

from gateway.dataplane.relay import Relay
from gateway.wire.listener import Listener


def test_a_relay_hears_all_of_it() -> None:
    """Attempts hand themselves over as the listener, past the type checker: names and arguments must agree."""
    said = {name: member for name, member in vars(Listener).items() if name.startswith("on_")}
    assert len(said) == 7
    for name, member in said.items():
        assert list(inspect.signature(getattr(Relay, name)).parameters) == list(inspect.signature(member).parameters)
