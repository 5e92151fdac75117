"""Finished requests by column, and what many of them have in common.

A pass over a few columns costs a fraction of reading the fields of objects one by one. And most fields of an outcome
take few different values: they are its `Kind`, one object for all outcomes with the same ones, so that what a part of
control derives from those fields (rows of its counters, a piece of JSON) is derived once and kept by kind (`ByKind`).
A kind is known again by its bytes and read once. Made by ``control.recorder``, read by whoever subscribes there and by
``store.recording``.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from gateway.core.columns import per_token
from gateway.model.outcome import Attempt, Capture, Columns, Kind, Outcome

# A kind is bounded by the policy's names, but for a model or adapter that a client makes up: then all are met anew.
KINDS_MOST = 20_000

T = TypeVar("T")


class Batch(NamedTuple):
    """Outcomes in the order of arrival: ``Outcome``'s fields as columns, in their order, and three more.

    ``attempts`` is None for one that answered with the request's status: its pool and endpoint are the kind's, and
    ``started_s`` and ``took_s`` say the rest. ``per_token_s`` is the time of each output token after the first, -1
    where nobody knows it. Numbers of workers' messages are in arrays: objects of them would be spread over twenty
    times the memory, and fetching that costs more than all that is done with them.
    """

    kind: list[Kind]
    request_id: list[str]
    at: Sequence[float]
    attempts: list[tuple[Attempt, ...] | None]
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
    conversation: list[str]
    capture: list[Capture | None]
    trace_id: list[str]
    started_s: Sequence[float]
    took_s: Sequence[float]
    per_token_s: Sequence[float]

    def only(self, wanted: Iterable[object]) -> "Batch":
        """Those for which ``wanted``, a column, is true."""
        chosen = list(wanted)
        columns: Any = (list(compress(column, chosen)) for column in self)
        return Batch(*columns)

    def other_attempts(self) -> Iterator[tuple[int, tuple[Attempt, ...]]]:
        """Those that are not just the one that answered, with the place of their request."""
        if self.attempts.count(None) < len(self.attempts):
            for place, tried in enumerate(self.attempts):
                if tried is not None:
                    yield place, tried

    def outcomes(self) -> list[Outcome]:
        """One by one."""
        attempts = [
            (Attempt(kind.pool, kind.endpoint, kind.status, "", started_s, took_s),) if tried is None else tried
            for kind, tried, started_s, took_s in zip(
                self.kind, self.attempts, self.started_s, self.took_s, strict=True
            )
        ]
        columns = self._replace(attempts=attempts)  # type: ignore[arg-type]  # a list that holds less
        return [Outcome(*row) for row in zip(*columns[: len(_FIELDS)], strict=True)]


_DECODER = msgspec.msgpack.Decoder(Columns)
_KIND_DECODER = msgspec.msgpack.Decoder(Kind)
_FIELDS = Outcome.__struct_fields__
# What a message holds in a form of its own: by place, or as places among the kinds.
_PARTIAL = ("kinds", "kind", "attempts", "capture")
_CODES: dict[Any, str] = {list[float]: "d", list[int]: "q", list[str]: ""}
# What it holds as whole columns: the array's code, none for texts.
_WHOLE = {field.name: _CODES[field.type] for field in msgspec.structs.fields(Columns) if field.name not in _PARTIAL}


def by_column(outcomes: Sequence[Outcome]) -> Batch:
    """The outcomes as a batch."""
    columns: Any = list(map(list, zip(*map(astuple, outcomes), strict=True))) or [[] for _ in _FIELDS]
    unused = [0.0] * len(outcomes)
    columns += (unused, unused, [])
    return _timed(Batch(*columns))


class Kinds:
    """The kinds met so far, at most ``most`` at a time."""

    def __init__(self, most: int = KINDS_MOST) -> None:
        self._most = most
        self._known: dict[bytes, Kind] = {}

    def batch(self, messages: Iterable[bytes]) -> Batch:
        """What messages hold, each an encoded ``Columns``. Raises ``msgspec.MsgspecError``."""
        whole: dict[str, Any] = {name: array(code) if code else [] for name, code in _WHOLE.items()}
        kind: list[Kind] = []
        attempts: list[tuple[Attempt, ...] | None] = []
        capture: list[Capture | None] = []
        for message in messages:
            arrived = _DECODER.decode(message)
            number = len(arrived.kind)
            for name, column in whole.items():
                more = getattr(arrived, name)
                whole[name] = _longer(column, more)
                if len(more) != number:
                    raise msgspec.ValidationError(f"columns of {number} and {len(more)} outcomes: {name}")
            met = list(map(self._meet, arrived.kinds))
            try:
                kind += map(met.__getitem__, arrived.kind)
                attempts += _spread(arrived.attempts, None, number)
                capture += _spread(arrived.capture, None, number)
            except IndexError:
                raise msgspec.ValidationError("a place beyond the outcomes") from None
        given: Any = {"attempts": attempts, "capture": capture, **whole}
        return _timed(Batch(kind=kind, per_token_s=[], **given))

    def _meet(self, key: bytes) -> Kind:
        kind = self._known.get(key)
        if kind is None:
            if len(self._known) >= self._most:
                self._known.clear()
            kind = self._known[key] = _KIND_DECODER.decode(key)
        return kind


def _spread(some: Mapping[int, T], otherwise: T, number: int) -> list[T]:
    """A column of so many, of the values of some places."""
    column = [otherwise] * number
    for place, value in some.items():
        column[place] = value
    return column


def _longer(column: Any, more: list[Any]) -> Any:
    """The column with more at its end; a list from then on if a number does not fit into an array."""
    try:
        column += array(column.typecode, more) if isinstance(column, array) else more
    except OverflowError:
        return [*column, *more]
    return column


def numbers(column: Sequence[T]) -> list[T]:
    """The column as a list."""
    return column.tolist() if isinstance(column, array) else list(column)


def _timed(batch: Batch) -> Batch:
    return batch._replace(per_token_s=per_token(numbers(batch.first_to_last_s), numbers(batch.completion_tokens)))


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
