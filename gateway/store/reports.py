"""Reports of evidence that the gateways of one database write for each other, and read in one order.

The order is that of a single row that every writer counts up in its own transaction: the row's lock makes the next one
wait, so a position is visible only when all before it are. A sequence would not do that: a reader could pass over a
position whose transaction ends later. Called by control's sharing, in threads.
"""

from typing import NamedTuple

from sqlalchemy import Engine, delete, func, insert, select, update

from gateway.core.evidence.setting import AHEAD_S
from gateway.store.tables import evidence_meters, evidence_order, evidence_reports

READ_MOST = 2_000
LATEST = 100
"""Reports that say which clocks there are; each gateway writes one a second."""


class Stored(NamedTuple):
    """A report at its position."""

    position: int
    body: bytes


class Meters(NamedTuple):
    """Meters as one of the gateways had them at a moment."""

    at: float
    body: bytes


def append(engine: Engine, at: float, body: bytes) -> int:
    """Write a report behind all others; its position."""
    with engine.begin() as connection:
        connection.execute(update(evidence_order).values(position=evidence_order.c.position + 1))
        position: int = connection.execute(select(evidence_order.c.position)).scalar_one()
        connection.execute(insert(evidence_reports).values(position=position, at=at, body=body))
    return position


def read(engine: Engine, after: int) -> list[Stored]:
    """The reports behind a position, in their order, ``READ_MOST`` at a time."""
    columns = (evidence_reports.c.position, evidence_reports.c.body)
    statement = select(*columns).where(evidence_reports.c.position > after).order_by(evidence_reports.c.position)
    with engine.connect() as connection:
        return [Stored(row.position, row.body) for row in connection.execute(statement.limit(READ_MOST))]


def position_at(engine: Engine, at: float) -> int:
    """The position before the first report of that moment or later; the last one if there is none."""
    first = select(func.min(evidence_reports.c.position)).where(evidence_reports.c.at >= at)
    with engine.connect() as connection:
        found: int | None = connection.execute(first).scalar()
        if found is not None:
            return found - 1
        last: int = connection.execute(select(evidence_order.c.position)).scalar_one()
        return last


def forget(engine: Engine, now: float, keep_s: float) -> int:
    """Delete what was reported longer ago than ``keep_s`` by the slowest clock that reports; how many.

    By its own, a gateway whose clock is ahead would take from the others what they have not read yet.
    """
    last = select(evidence_order.c.position).scalar_subquery()
    recent = select(func.min(evidence_reports.c.at)).where(evidence_reports.c.position > last - LATEST)
    with engine.begin() as connection:
        slowest: float | None = connection.execute(recent).scalar()
        before = min(now, now if slowest is None else slowest) - keep_s
        return connection.execute(delete(evidence_reports).where(evidence_reports.c.at < before)).rowcount


def put_meters(engine: Engine, meters: Meters) -> None:
    """Leave meters for a gateway that joins; older ones never replace newer ones."""
    values = {"at": meters.at, "body": meters.body}
    with engine.begin() as connection:
        # The order's row serializes this too: two first ones must not both insert.
        connection.execute(update(evidence_order).values(position=evidence_order.c.position))
        newest = connection.execute(select(evidence_meters.c.at)).scalar()
        if newest is None:
            connection.execute(insert(evidence_meters).values(id=1, **values))
        elif newest < meters.at or newest > meters.at + AHEAD_S:
            connection.execute(update(evidence_meters).values(**values))


def meters(engine: Engine) -> Meters | None:
    """The newest that were left."""
    with engine.connect() as connection:
        row = connection.execute(select(evidence_meters.c.at, evidence_meters.c.body)).first()
    return Meters(row.at, row.body) if row is not None else None
