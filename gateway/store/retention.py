"""Delete what is past its time, in slices, so that no lock is held long."""

from sqlalchemy import Engine, Table, delete, func, select

from gateway.store.tables import aftermath, pairs, requests, samples

SLICE = 2_000


def expire(engine: Engine, now: float, keep_s: float) -> int:
    """Delete requests, aftermath and pairs older than ``keep_s`` and samples past their own time; rows deleted."""
    gone = _delete_before(engine, requests, "at", now - keep_s)
    gone += _delete_before(engine, aftermath, "at", now - keep_s)
    gone += _delete_before(engine, pairs, "at", now - keep_s)
    return gone + _delete_before(engine, samples, "expires_at", now)


def count(engine: Engine, table: Table) -> int:
    """Rows of a table."""
    with engine.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _delete_before(engine: Engine, table: Table, column: str, before: float) -> int:
    gone = 0
    while True:
        oldest = select(table.c.id).where(table.c[column] < before).order_by(table.c.id).limit(SLICE)
        with engine.begin() as connection:
            deleted = connection.execute(delete(table).where(table.c.id.in_(oldest))).rowcount
        gone += deleted
        if deleted < SLICE:
            return gone
