"""The gateway's access log as the demo reads it: what was decided on each request, and how it went.

Own reading of the documented line, not the gateway's code: what the log says is one of the witnesses. Also the table
that the demo ends with, which is made of these lines. Pure.
"""

from collections.abc import Iterable
from datetime import datetime
from statistics import median

import msgspec


class Attempt(msgspec.Struct, frozen=True):
    """One try at one endpoint."""

    pool: str
    status: int
    failure: str = ""


class Entry(msgspec.Struct, frozen=True):
    """One line, as far as the demo needs it. Fields that the line leaves out are empty, or -1 where a number."""

    at: datetime
    request_id: str
    status: int
    result: str
    total_ms: float
    generation: int
    api: str = ""
    tenant: str = ""
    bucket: str = ""
    privilege: str = ""
    rule: str = ""
    constraints: tuple[str, ...] = ()
    pool: str = ""
    precision: str = ""
    attempts: tuple[Attempt, ...] = ()
    ttft_ms: float = -1.0
    tpot_ms: float = -1.0
    prompt_tokens: int = -1
    completion_tokens: int = -1
    stream: bool = False


class Row(msgspec.Struct, frozen=True):
    """What happened to a bucket in a pool by a rule. Times in milliseconds: medians, and the longest
    TTFT; -1 where none was measured."""

    bucket: str
    pool: str
    rule: str
    narrowed_by: tuple[str, ...]
    requests: int
    ttft_ms: float
    ttft_most_ms: float
    tpot_ms: float
    prompt_tokens: int
    completion_tokens: int


def read_access_log(content: bytes) -> tuple[Entry, ...]:
    """Every whole line, in the order of arrival."""
    decoder = msgspec.json.Decoder(Entry)
    lines = content.split(b"\n")
    entries = [decoder.decode(line) for line in lines[:-1] if line]
    return tuple(sorted(entries, key=lambda entry: entry.at))


def rows_of(entries: Iterable[Entry]) -> tuple[Row, ...]:
    """The table: one row per bucket, pool, rule and the constraints that narrowed, of what a pool answered well."""
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Entry]] = {}
    for entry in entries:
        if entry.pool and entry.result == "ok":
            groups.setdefault((entry.bucket, entry.pool, entry.rule, entry.constraints), []).append(entry)
    return tuple(
        Row(
            *key,
            len(group),
            _median([entry.ttft_ms for entry in group]),
            max(entry.ttft_ms for entry in group),
            _median([entry.tpot_ms for entry in group if entry.stream]),
            sum(max(entry.prompt_tokens, 0) for entry in group),
            sum(max(entry.completion_tokens, 0) for entry in group),
        )
        for key, group in sorted(groups.items())
    )


def _median(values: Iterable[float]) -> float:
    """The median of what was measured; -1 of nothing."""
    known = [value for value in values if value >= 0.0]
    return median(known) if known else -1.0
