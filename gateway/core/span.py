"""Moments as people write them: ``24h`` ago, an ISO date, or seconds since the epoch.

Owns the spelling. Pure: ``now`` is an argument. Called by commands and by the admin API.
"""

import re
from datetime import UTC, datetime
from math import isfinite

_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def read_moment(text: str, now: float) -> float:
    """Seconds since the epoch: a duration before ``now`` (``90m``, ``1d12h``), an ISO 8601 moment (UTC unless it says
    otherwise), or such seconds themselves. Raises ``ValueError`` saying what is expected.
    """
    text = text.strip()
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return now - sum(float(number) * _SECONDS[unit] for number, unit in parts)
    moment: float | None = None
    try:
        moment = float(text)
    except ValueError:
        try:
            read = datetime.fromisoformat(text)
            moment = (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            moment = None
    if moment is None or not isfinite(moment):
        raise ValueError(f"{text!r} is no time: write 90m, 24h, 7d, or 2026-01-31T08:00")
    return moment
