"""Finished requests as rows: what they share with others of their kind is written once, what is their own for each.

Owns the form of both rows and the way they are inserted together. Reading them back is ``store.records``'. Called by
control's archive.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import astuple
from sqlalchemy import Engine

from gateway.core.batch import KINDS_MOST, Batch
from gateway.core.quality import Inspection, Verdict
from gateway.model.outcome import Kind
from gateway.store.inserting import Inserter, Joined, fitting
from gateway.store.tables import request_facts, request_kinds

REFRESH_S = 86_400.0  # a kind is told anew after this, so that retention sees that it is still there

_KIND_COLUMNS = (*Kind.__struct_fields__, "deployment")
_CONSTRAINTS = Kind.__struct_fields__.index("constraints")
_FACT_COLUMNS = (
    *("kind", "request_id", "at", "attempts", "queue_s", "overhead_s", "ttft_s", "first_to_last_s", "longest_gap_s"),
    *("total_s", "prompt_tokens_estimated", "prompt_tokens", "cached_tokens", "completion_tokens", "events"),
    *("bytes_in", "bytes_out", "temperature", "conversation", "trace_id"),
)
# Left to their defaults, and out of the row, where nothing was checked: a null takes the driver longer than all others.
_CHECKED_COLUMNS = ("score", "failures", "findings")
_at = itemgetter(_FACT_COLUMNS.index("at"))
_JSON = msgspec.json.Encoder()

_fit_kind = fitting(request_kinds, _KIND_COLUMNS)


class KindRow(msgspec.Struct, frozen=True, eq=False):
    """A kind and what runs in its pool. ``number`` is a digest of it: all gateways of a database give it the same."""

    number: int
    values: tuple[Any, ...]
    answered: msgspec.Raw  # what an attempt that answered begins with in JSON


RequestRow = tuple[KindRow, tuple[Any, ...]]
"""A request's kind, and what is its own."""

Checked = tuple[Sequence[float | None], Sequence[str], Sequence[str]]


def kind_row(kind: Kind, deployment: str) -> KindRow:
    """A kind's row; texts are cut so that any database takes them. ``deployment`` is the hash of what its pool runs."""
    values = list(astuple(kind))
    values[_CONSTRAINTS] = _JSON.encode(kind.constraints).decode()
    row = _fit_kind((*values, deployment))
    digest = blake2b(msgspec.msgpack.encode(row), digest_size=8).digest()
    answered = b"%b,%b,%b,%b" % tuple(map(_JSON.encode, (kind.pool, kind.endpoint, kind.status, "")))
    return KindRow(int.from_bytes(digest) >> 1, row, msgspec.Raw(answered))  # both databases count with a sign


class RequestRows(Collection[RequestRow]):
    """A batch's rows, ``kinds`` being that of each. They wait as columns and are made one after the other when they are
    read; nothing of texts waits with them."""

    def __init__(self, batch: Batch, kinds: list[KindRow]) -> None:
        self.kinds = kinds
        self.newest = max(batch.at, default=0.0)
        self._batch = batch._replace(capture=[])

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[RequestRow]:
        return zip(self.kinds, self.facts(), strict=True)

    def __contains__(self, row: object) -> bool:
        return row in list(self)

    def facts(self) -> Iterator[tuple[Any, ...]]:
        """What is each request's own."""
        return _facts(self._batch, self.kinds, ())


def rows_of(batch: Batch, kinds: list[KindRow], checked: Checked | tuple[()] = ()) -> Iterator[RequestRow]:
    """A batch's rows, ``kinds`` being that of each; ``checked`` are the columns of what was checked."""
    return zip(kinds, _facts(batch, kinds, checked), strict=True)


def _facts(batch: Batch, kinds: list[KindRow], checked: Checked | tuple[()]) -> Iterator[tuple[Any, ...]]:
    return zip(
        [kind.number for kind in kinds],
        batch.request_id,
        batch.at,
        _attempts(batch, kinds),
        batch.queue_s,
        batch.overhead_s,
        batch.ttft_s,
        batch.first_to_last_s,
        batch.longest_gap_s,
        batch.total_s,
        batch.prompt_tokens_estimated,
        batch.prompt_tokens,
        batch.cached_tokens,
        batch.completion_tokens,
        batch.events,
        batch.bytes_in,
        batch.bytes_out,
        batch.temperature,
        batch.conversation,
        batch.trace_id,
        *checked,
        strict=True,
    )


def _attempts(batch: Batch, known: Iterable[KindRow]) -> list[str]:
    """Each request's attempts as JSON. Nearly always there is the one that answered."""
    answered = zip([kind.answered for kind in known], batch.started_s, batch.took_s, strict=True)
    found = _JSON.encode_lines(zip(answered)).decode().split("\n")[:-1]
    for place, tried in batch.other_attempts():
        found[place] = _JSON.encode(tried).decode()
    return found


def checked_of(inspections: Sequence[Inspection | None]) -> Checked:
    """What the checks found, as columns."""
    score = [inspection.score if inspection is not None else None for inspection in inspections]
    return score, list(map(_failures, inspections)), list(map(_findings, inspections))


def _failures(inspection: Inspection | None) -> str:
    return "".join(f",{failure}" for failure in inspection.failures) + "," if inspection and inspection.failures else ""


def _findings(inspection: Inspection | None) -> str:
    findings = inspection.findings if inspection is not None else ()
    told = [[finding.check, finding.verdict] for finding in findings if finding.verdict != Verdict.NOT_APPLICABLE]
    return _JSON.encode(told).decode()


class RequestInserter:
    """Inserts requests with the kinds that the database does not know yet. Not for concurrent use."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        anew = 'ON CONFLICT (id) DO UPDATE SET "at" = excluded."at"'
        self._kinds = Inserter(engine, request_kinds, ("id", "at", *_KIND_COLUMNS), anew)
        self._facts = Inserter(engine, request_facts, _FACT_COLUMNS)
        self._checked = Inserter(engine, request_facts, (*_FACT_COLUMNS, *_CHECKED_COLUMNS))
        self._told_at: dict[int, float] = {}
        self.refusals = self._facts.refusals

    def fitted(self, row: RequestRow) -> RequestRow:
        """The row with texts that any database takes."""
        kind, fact = row
        return kind, (self._checked if len(fact) > len(_FACT_COLUMNS) else self._facts).fitted(fact)

    def add(self, rows: Collection[RequestRow]) -> None:
        """Insert all rows in one transaction, or none."""
        if not rows:
            return
        pieces = rows.pieces if isinstance(rows, Joined) else (rows,)
        waiting = [piece for piece in pieces if isinstance(piece, RequestRows)]
        others = [row for piece in pieces if not isinstance(piece, RequestRows) for row in piece]
        of_kind = {kind for piece in waiting for kind in piece.kinds}.union(kind for kind, _ in others)
        newest = max(chain((piece.newest for piece in waiting), (_at(fact) for _, fact in others)))
        due = newest - REFRESH_S
        kinds = {kind.number: kind for kind in of_kind if self._told_at.get(kind.number, due) <= due}
        plain = [fact for _, fact in others if len(fact) == len(_FACT_COLUMNS)]
        with self._engine.begin() as connection:
            # In one order everywhere: two gateways that tell the same kinds must not wait for each other.
            self._kinds.put(connection, [(number, newest, *kinds[number].values) for number in sorted(kinds)])
            self._facts.put(connection, chain(*(piece.facts() for piece in waiting), plain))
            self._checked.put(connection, (fact for _, fact in others if len(fact) > len(_FACT_COLUMNS)))
        if len(self._told_at) + len(kinds) > KINDS_MOST:
            self._told_at.clear()
        self._told_at.update(dict.fromkeys(kinds, newest))
