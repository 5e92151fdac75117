"""Numbers as people are shown them: with the unit that a file needs, which the published normal form leaves out.

Pure; called by pydantic when a policy is dumped.
"""

from decimal import Decimal

from pydantic import SerializationInfo

IN_WORDS = "in words"


def duration_shown(seconds: float, info: SerializationInfo) -> float | str:
    """Seconds as they are published, or ``IN_WORDS`` as a file takes them."""
    return f"{_plain(seconds)}s" if info.context == IN_WORDS else seconds


def frequency_shown(per_year: float, info: SerializationInfo) -> float | str:
    """Times a year, in the same two forms."""
    return f"{_plain(per_year)} per year" if info.context == IN_WORDS else per_year


def _plain(number: float) -> str:
    """All digits and no exponent."""
    return f"{Decimal(repr(number)):f}"
