"""A request's attempts as they are stored, and how much of its time they cost. Pure. Called by the report and by the
levels that a rehearsal begins with.
"""

from collections.abc import Sequence

import msgspec

from gateway.model.outcome import Attempt

_DECODER = msgspec.json.Decoder(list[Attempt])
_SEVERAL = "],["  # in a list of lists; JSON escapes nothing that would look like it, and names hold no brackets


def attempts_of(text: str) -> list[Attempt]:
    """Every try, in order."""
    return _DECODER.decode(text)


def has_several(text: str) -> bool:
    """Whether there was more than one, without reading them."""
    return _SEVERAL in text


def lost_s(attempts: Sequence[Attempt]) -> float:
    """Seconds from the first attempt's start to the last one's: what failed before is no slowness of the pool that then
    answered."""
    return attempts[-1].started_s - attempts[0].started_s if attempts else 0.0
