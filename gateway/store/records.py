"""Records of requests, read back: in pages newest first, or all in the order of arrival.

``requests`` is a view of what ``store.recording`` writes: each request's own row with the row of its kind.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnClause, Engine, Select, literal_column, select
from sqlalchemy.engine import RowMapping

from gateway.store.selecting import PAGE_MOST, between, having, newest_first
from gateway.store.tables import request_kinds, requests

# Of the view, beside the columns of a record.
_KIND: ColumnClause[int] = literal_column("requests.kind")


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
    statement = newest_first(matching(wanted), requests, before, min(most, PAGE_MOST))
    kinds = _kinds(wanted)
    with engine.connect() as connection:
        if kinds is not None and connection.execute(kinds.limit(1)).first() is None:
            return []  # without reading every request to find that none is of such a kind
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
    statement = between(select(requests), requests, wanted.since, wanted.until)
    statement = having(statement, requests, request_id=wanted.request_id)
    kinds = _kinds(wanted)
    if kinds is not None:
        statement = statement.where(_KIND.in_(kinds))
    if wanted.failed:
        # By kind, which a scan has without looking up the result of each request.
        statement = statement.where((requests.c.failures != "") | _KIND.in_(_kinds_other_than_ok()))
    return statement


def _kinds_other_than_ok() -> Select[Any]:
    return select(request_kinds.c.id).where(request_kinds.c.result != "ok")


def _kinds(wanted: Filter) -> Select[Any] | None:
    """The kinds that a filter leaves; None if it leaves all."""
    names = [name for name in ("bucket", "pool", "tenant", "result") if getattr(wanted, name)]
    if not names:
        return None
    return select(request_kinds.c.id).where(*(request_kinds.c[name] == getattr(wanted, name) for name in names))
