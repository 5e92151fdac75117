"""Delete what is past its time, in slices, so that no lock is held long."""

import itertools

from sqlalchemy import Engine, Table, delete, func, select

from gateway.store.recording import REFRESH_S
from gateway.store.tables import aftermath, pairs, request_facts, request_kinds, samples

SLICE = 2_000


def expire(engine: Engine, now: float, keep_s: float, slices: int | None = None) -> int:
    """Delete requests, aftermath and pairs older than ``keep_s`` and samples past their own time; rows deleted.

    ``slices`` bounds the work: at most so many slices of each table, so that a writer can go on in between. Less than
    ``SLICE`` deleted means that nothing is left to delete.
    """
    gone = _delete_before(engine, request_facts, "at", now - keep_s, slices)
    # Some request may be younger than what is known of its kind, by a day, and by what clocks and queues differ.
    gone += _delete_before(engine, request_kinds, "at", now - keep_s - 2 * REFRESH_S, slices)
    gone += _delete_before(engine, aftermath, "at", now - keep_s, slices)
    gone += _delete_before(engine, pairs, "at", now - keep_s, slices)
    return gone + _delete_before(engine, samples, "expires_at", now, slices)


def count(engine: Engine, table: Table) -> int:
    """Rows of a table."""
    with engine.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _delete_before(engine: Engine, table: Table, column: str, before: float, slices: int | None) -> int:
    gone = 0
    for _ in itertools.count() if slices is None else range(slices):
        # By the column's index: in the order of ids a database reads every row to find that none is old enough.
        oldest = select(table.c.id).where(table.c[column] < before).order_by(table.c[column]).limit(SLICE)
        with engine.begin() as connection:
            deleted = connection.execute(delete(table).where(table.c.id.in_(oldest))).rowcount
        gone += deleted
        if deleted < SLICE:
            break
    return gone
