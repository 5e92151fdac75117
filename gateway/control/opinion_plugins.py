"""Optional opinions on two answers, an embedding similarity or a judge model, found among the installed distributions.

Owns the finding: a distribution offers one as an entry point of the group ``quantgate.opinions`` called ``embedding``
or ``judge`` that gives a ``core.comparison.Opinion`` when called. None comes with the gateway, and none is loaded
before a shadow rule asks for it. Loaded in the scorer processes only; control asks just what is there.
"""

from functools import cache
from importlib.metadata import entry_points

from gateway.core.comparison import Opinion
from gateway.model.proving import Shadow

GROUP = "quantgate.opinions"


def asked_by(rule: Shadow) -> tuple[str, ...]:
    """The opinions that a rule wants."""
    return tuple(name for name, wanted in (("embedding", rule.embedding), ("judge", rule.judge)) if wanted)


def installed() -> frozenset[str]:
    """The names that could be loaded."""
    return frozenset(found.name for found in entry_points(group=GROUP))


@cache
def load(name: str) -> Opinion | None:
    """The plug-in of that name; None if none is installed. Kept for the life of the process."""
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        return None
    opinion: Opinion = found.load()()
    return opinion
