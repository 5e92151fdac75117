"""Finished requests by column, and what many of them have in common.

A pass over a few columns costs a fraction of reading the fields of objects one by one. And most fields of an outcome
take few different values: names that a policy bounds, enums, flags. All outcomes with the same ones are of one `Kind`,
so that what a part of control derives from those fields (rows of its counters, a piece of JSON) is derived once and
kept by kind (`ByKind`). Made by ``control.recorder``, read by whoever subscribes there and by ``store.records``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from gateway.model.outcome import Attempt, Capture, Outcome

# A kind is bounded by the policy's names, but for a model or adapter that a client makes up: then all are met anew.
KINDS_MOST = 20_000

T = TypeVar("T")


class Kind(msgspec.Struct, frozen=True, eq=False):
    """What outcomes of one kind have in common: ``Outcome``'s fields of these names. Compared by identity."""

    generation: int
    worker: int
    api: str
    tenant: str
    tier: str
    model: str
    adapter: str
    bucket: str
    length: str
    task: str
    privilege: str
    tool_use: str
    structured: str
    stream: bool
    rule: str
    arm: str
    rollout: str
    pool: str
    endpoint: str
    precision: str
    status: int
    result: str
    failure: str
    error_code: str
    constraints: tuple[str, ...]
    finish_reason: str
    seed: bool


class Batch(NamedTuple):
    """Outcomes with the kind of each, and the fields in which they differ as columns, all in the order of arrival.

    ``per_token_s`` is the time of each output token after the first, -1 where nobody knows it.
    """

    outcomes: Sequence[Outcome]
    kinds: Sequence[Kind]
    per_token_s: Sequence[float]
    request_id: Sequence[str]
    at: Sequence[float]
    attempts: Sequence[tuple[Attempt, ...]]
    queue_s: Sequence[float]
    overhead_s: Sequence[float]
    ttft_s: Sequence[float]
    first_to_last_s: Sequence[float]
    total_s: Sequence[float]
    prompt_tokens_estimated: Sequence[int]
    prompt_tokens: Sequence[int]
    cached_tokens: Sequence[int]
    completion_tokens: Sequence[int]
    events: Sequence[int]
    bytes_in: Sequence[int]
    bytes_out: Sequence[int]
    temperature: Sequence[float]
    conversation: Sequence[str]
    capture: Sequence[Capture | None]
    trace_id: Sequence[str]
    longest_gap_s: Sequence[float]

    def only(self, wanted: Sequence[object]) -> "Batch":
        """Those for which ``wanted``, a column, is true."""
        return Batch._make(tuple(compress(column, wanted)) for column in self)


_POSITIONS: Mapping[str, int] = {name: at for at, name in enumerate(Outcome.__struct_fields__)}
_KIND = itemgetter(*(_POSITIONS[name] for name in Kind.__struct_fields__))
_COLUMNS = itemgetter(*(_POSITIONS[name] for name in Batch._fields if name in _POSITIONS))
_NOTHING: tuple[tuple[object, ...], ...] = ((),) * len(_POSITIONS)


class Kinds:
    """The kinds met so far, at most ``most`` at a time."""

    def __init__(self, most: int = KINDS_MOST) -> None:
        self._most = most
        self._known: dict[tuple[object, ...], Kind] = {}

    def batch(self, outcomes: Sequence[Outcome]) -> Batch:
        """The outcomes by column."""
        values = list(map(astuple, outcomes))
        columns = _COLUMNS(tuple(zip(*values, strict=True)) or _NOTHING)
        keys = list(map(_KIND, values))
        kinds = list(map(self._known.get, keys))
        if None in kinds:
            kinds = [kind or self._meet(key) for kind, key in zip(kinds, keys, strict=True)]
        made = Batch(outcomes, kinds, (), *columns)  # type: ignore[arg-type]  # none of them is None by now
        per_token_s = [
            span_s / (tokens - 1) if tokens > 1 and span_s >= 0.0 else -1.0
            for span_s, tokens in zip(made.first_to_last_s, made.completion_tokens, strict=True)
        ]
        return made._replace(per_token_s=per_token_s)

    def _meet(self, key: tuple[object, ...]) -> Kind:
        kind = self._known.get(key)
        if kind is None:
            if len(self._known) >= self._most:
                self._known.clear()
            kind = self._known[key] = Kind(*key)  # type: ignore[arg-type]  # the fields that _KIND took, in order
        return kind


class ByKind(dict[Kind, T]):
    """Something of each kind, made when it is first asked for, at most ``KINDS_MOST`` at a time."""

    def __init__(self, make: Callable[[Kind], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, kind: Kind) -> T:
        if len(self) >= KINDS_MOST:
            self.clear()
        value = self[kind] = self._make(kind)
        return value

    def of(self, kinds: Sequence[Kind]) -> Iterable[T]:
        """That of each."""
        return map(self.__getitem__, kinds)
