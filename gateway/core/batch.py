"""Finished requests by column, and what many of them have in common.

A pass over a few columns costs a fraction of reading the fields of objects one by one. And most fields of an outcome
take few different values: they are its `Kind`, one object for all outcomes with the same ones, so that what a part of
control derives from those fields (rows of its counters, a piece of JSON) is derived once and kept by kind (`ByKind`).
A kind is known again by its bytes and read once. Made by ``control.recorder``, read by whoever subscribes there and by
``store.recording``.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from gateway.model.outcome import Attempt, Capture, Finished, Kind, Outcome, Packed

# A kind is bounded by the policy's names, but for a model or adapter that a client makes up: then all are met anew.
KINDS_MOST = 20_000

T = TypeVar("T")


class Batch(NamedTuple):
    """Outcomes in the order of arrival: ``Outcome``'s fields as columns, in their order, and one more.

    ``per_token_s`` is the time of each output token after the first, -1 where nobody knows it.
    """

    kind: Sequence[Kind]
    request_id: Sequence[str]
    at: Sequence[float]
    attempts: Sequence[tuple[Attempt, ...]]
    queue_s: Sequence[float]
    overhead_s: Sequence[float]
    ttft_s: Sequence[float]
    first_to_last_s: Sequence[float]
    longest_gap_s: Sequence[float]
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
    pending_calls: Sequence[tuple[str, ...]]
    capture: Sequence[Capture | None]
    trace_id: Sequence[str]
    per_token_s: Sequence[float]

    def only(self, wanted: Iterable[object]) -> "Batch":
        """Those for which ``wanted``, a column, is true."""
        chosen = list(wanted)
        columns: Any = (tuple(compress(column, chosen)) for column in self)
        return Batch(*columns)

    def outcomes(self) -> list[Outcome]:
        """One by one."""
        return [Outcome(*row) for row in zip(*self[:-1], strict=True)]


_DECODER = msgspec.msgpack.Decoder(list[Packed])
_KIND_DECODER = msgspec.msgpack.Decoder(Kind)
_NOTHING = ((),) * len(Outcome.__struct_fields__)


def by_column(outcomes: Sequence[Finished[Any]]) -> Batch:
    """The outcomes as a batch."""
    columns: Any = tuple(zip(*map(astuple, outcomes), strict=True)) or _NOTHING
    batch = Batch(*(*columns, ()))
    per_token_s = [
        span_s / (tokens - 1) if tokens > 1 and span_s >= 0.0 else -1.0
        for span_s, tokens in zip(batch.first_to_last_s, batch.completion_tokens, strict=True)
    ]
    return batch._replace(per_token_s=per_token_s)


class Kinds:
    """The kinds met so far, at most ``most`` at a time."""

    def __init__(self, most: int = KINDS_MOST) -> None:
        self._most = most
        self._known: dict[bytes, Kind] = {}

    def batch(self, messages: Iterable[bytes | msgspec.Raw]) -> Batch:
        """What messages hold, each an encoded list of outcomes. Raises ``msgspec.MsgspecError``."""
        arrived = [outcome for message in messages for outcome in _DECODER.decode(message)]
        batch = by_column(arrived)
        keys: list[bytes] = list(map(bytes, batch.kind))  # type: ignore[arg-type]  # they are Raw so far
        kinds: Any = list(map(self._known.get, keys))
        if None in kinds:
            kinds = list(map(self._meet, keys))
        return batch._replace(kind=kinds)

    def _meet(self, key: bytes) -> Kind:
        kind = self._known.get(key)
        if kind is None:
            if len(self._known) >= self._most:
                self._known.clear()
            kind = self._known[key] = _KIND_DECODER.decode(key)
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

    def of(self, batch: Batch) -> Iterable[T]:
        """That of each outcome."""
        return map(self.__getitem__, batch.kind)
