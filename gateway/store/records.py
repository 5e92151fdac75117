"""One row per request: written in batches, read in pages, newest first or in order.

Inserts go past SQLAlchemy's per-row machinery: rows are plain tuples in column order, many to a statement, which is
what makes thousands a second affordable.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import orjson
from sqlalchemy import Engine, Table, select
from sqlalchemy.engine import RowMapping

from gateway.core.quality import Inspection, Verdict
from gateway.model.outcome import Outcome
from gateway.store.tables import requests

PAGE_MOST = 1000
PARAMETERS_MOST = 16_000  # of one statement; SQLite takes 32,766, PostgreSQL 65,535
_FROM_OUTCOME = [name for name in Outcome.__struct_fields__ if name in requests.c]
_COLUMNS = [*_FROM_OUTCOME, "deployment", "score", "failures", "findings"]
_AS_JSON = frozenset({"attempts", "constraints"})


class Record(NamedTuple):
    """A finished request with what the checks made of it. ``deployment`` is the hash of what ran in its pool."""

    outcome: Outcome
    inspection: Inspection | None = None
    deployment: str = ""


def row_of(record: Record) -> tuple[Any, ...]:
    """A record as values in the order of the insert."""
    outcome, inspection = record.outcome, record.inspection
    values = [
        orjson.dumps(msgspec.to_builtins(getattr(outcome, name))).decode()
        if name in _AS_JSON
        else getattr(outcome, name)
        for name in _FROM_OUTCOME
    ]
    if inspection is None:
        return (*values, record.deployment, None, "", "[]")
    failures = "".join(f",{failure}" for failure in inspection.failures)
    findings = [
        [finding.check, finding.verdict] for finding in inspection.findings if finding.verdict != Verdict.NOT_APPLICABLE
    ]
    return (
        *values,
        record.deployment,
        inspection.score,
        f"{failures}," if failures else "",
        orjson.dumps(findings).decode(),
    )


class Inserter:
    """Inserts for one table and its columns. Not for concurrent use: it belongs to the writer thread.

    Many rows go in one statement, so that the driver steps, and gives up the interpreter lock, once for all of them:
    with a step a row the writer and control's loop hand the lock to and fro thousands of times a second.
    """

    def __init__(self, engine: Engine, table: Table, columns: Sequence[str]) -> None:
        self._engine = engine
        self._lengths = [getattr(table.c[name].type, "length", None) for name in columns]
        quote = engine.dialect.identifier_preparer.quote
        mark = "?" if engine.dialect.paramstyle == "qmark" else "%s"
        self._head = f"INSERT INTO {quote(table.name)} ({', '.join(map(quote, columns))}) VALUES "  # noqa: S608 - names of the schema
        self._row = f"({', '.join([mark] * len(columns))})"
        self._most = PARAMETERS_MOST // len(columns)

    def fitted(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The row with texts cut to their columns' length and without NUL, which PostgreSQL insists on."""
        return tuple(
            value.replace("\0", "")[:length] if isinstance(value, str) else value
            for value, length in zip(row, self._lengths, strict=True)
        )

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Insert all rows in one transaction, or none."""
        if not rows:
            return
        with self._engine.begin() as connection:
            for at in range(0, len(rows), self._most):
                part = rows[at : at + self._most]
                statement = self._head + ", ".join([self._row] * len(part))
                connection.exec_driver_sql(statement, tuple(chain.from_iterable(part)))


def inserter(engine: Engine) -> Inserter:
    """The insert of ``row_of``'s rows."""
    return Inserter(engine, requests, _COLUMNS)


class Filter(NamedTuple):
    """Which records: empty and None match all. ``failed``: a failed check or a result other than ok."""

    since: float | None = None
    until: float | None = None
    bucket: str = ""
    pool: str = ""
    tenant: str = ""
    result: str = ""
    request_id: str = ""
    failed: bool = False


def page(engine: Engine, wanted: Filter, before: int | None = None, most: int = 100) -> list[RowMapping]:
    """Records newest first, before the given row id. The last one's ``id`` asks for the next page."""
    statement = matching(wanted).order_by(requests.c.id.desc()).limit(min(most, PAGE_MOST))
    if before is not None:
        statement = statement.where(requests.c.id < before)
    with engine.connect() as connection:
        return list(connection.execute(statement).mappings())


def stream(engine: Engine, wanted: Filter, columns: Sequence[str] = ()) -> Iterator[RowMapping]:
    """All matching records in the order of arrival, without holding them all in memory."""
    statement = matching(wanted).order_by(requests.c.id)
    if columns:
        statement = statement.with_only_columns(*(requests.c[name] for name in columns))
    with engine.connect().execution_options(yield_per=2000, stream_results=True) as connection:
        yield from connection.execute(statement).mappings()


def matching(wanted: Filter) -> Any:
    """The select of matching records; callers add columns, order and bounds."""
    statement = select(requests)
    if wanted.since is not None:
        statement = statement.where(requests.c.at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(requests.c.at < wanted.until)
    for name in ("bucket", "pool", "tenant", "result", "request_id"):
        value = getattr(wanted, name)
        if value:
            statement = statement.where(requests.c[name] == value)
    if wanted.failed:
        statement = statement.where((requests.c.failures != "") | (requests.c.result != "ok"))
    return statement
