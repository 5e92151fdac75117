"""Where each (rollout, bucket) stands, compared and set, with one line of the append-only record per change.

Both are written in one transaction: a standing without its record cannot exist. The record is chained by hashes, so
that a line that was altered or taken out shows. Called by control's keeper in threads of its own.
"""

from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from gateway.core.rollout.effects import Audit
from gateway.core.rollout.standing import Standing
from gateway.store.selecting import PAGE_MOST, having, newest_first
from gateway.store.tables import rollout_events, rollouts


class Change(NamedTuple):
    """A new standing over version ``expected``, its record, the policy's digest and the evidence as JSON."""

    standing: Standing
    expected: int
    audit: Audit
    policy: str
    evidence: str


class EventRow(msgspec.Struct, frozen=True):
    """A line of the record."""

    id: int
    identity: str
    bucket: str
    version: int
    rollout: str
    at: float
    event: str
    before: str
    after: str
    stage: int
    share_bp: int
    reason: str
    actor: str
    policy: str
    evidence: str
    chain: str


def commit(engine: Engine, change: Change) -> bool:
    """Store a change; False, and nothing is stored, if another writer was first."""
    standing = change.standing
    values = {
        "rollout": standing.rollout,
        "state": standing.state.value,
        "version": standing.version,
        "at": standing.since_s,
        "standing": msgspec.json.encode(standing).decode(),
    }
    try:
        with engine.begin() as connection:
            if not _set(connection, standing, change.expected, values):
                return False
            _append(connection, change)
    except IntegrityError:  # the first row of a bucket, written by two at once
        return False
    return True


def load(engine: Engine) -> list[Standing]:
    """Every standing."""
    with engine.connect() as connection:
        found = connection.execute(select(rollouts.c.standing)).scalars().all()
    return [msgspec.json.decode(text, type=Standing) for text in found]


def versions(engine: Engine) -> dict[tuple[str, str], int]:
    """(identity, bucket) → version, to see what another replica has changed."""
    with engine.connect() as connection:
        rows = connection.execute(select(rollouts.c.identity, rollouts.c.bucket, rollouts.c.version)).all()
    return {(row.identity, row.bucket): row.version for row in rows}


def history(
    engine: Engine, *, rollout: str = "", bucket: str = "", before: int | None = None, most: int = 100
) -> list[EventRow]:
    """The record, newest first, before the given row id."""
    statement = having(select(rollout_events), rollout_events, rollout=rollout, bucket=bucket)
    statement = newest_first(statement, rollout_events, before, min(most, PAGE_MOST))
    with engine.connect() as connection:
        return [EventRow(**row) for row in connection.execute(statement).mappings()]


def broken_chain(engine: Engine) -> int | None:
    """Id of the first line that does not follow from the one before it; None if the record is whole."""
    last: dict[tuple[str, str], str] = {}
    with engine.connect() as connection:
        for row in connection.execute(select(rollout_events).order_by(rollout_events.c.id)).mappings():
            event = EventRow(**row)
            key = (event.identity, event.bucket)
            if event.chain != chain_of(last.get(key, ""), event):
                return event.id
            last[key] = event.chain
    return None


def chain_of(before: str, event: EventRow) -> str:
    """Hash over the line and the chain of the bucket's line before it."""
    values = msgspec.structs.asdict(event)
    text = "\x1f".join(str(values[name]) for name in EventRow.__struct_fields__ if name not in ("id", "chain"))
    return sha256(f"{before}\x1f{text}".encode()).hexdigest()


def _set(connection: Connection, standing: Standing, expected: int, values: dict[str, Any]) -> bool:
    key = (rollouts.c.identity == standing.identity) & (rollouts.c.bucket == standing.bucket)
    if expected == 0:
        found = connection.execute(select(rollouts.c.version).where(key)).first()
        if found is not None:
            return False
        connection.execute(insert(rollouts).values(identity=standing.identity, bucket=standing.bucket, **values))
        return True
    changed = connection.execute(update(rollouts).where(key & (rollouts.c.version == expected)).values(**values))
    return changed.rowcount == 1


def _append(connection: Connection, change: Change) -> None:
    audit = change.audit
    row = EventRow(
        0,
        audit.identity,
        audit.bucket,
        audit.version,
        change.standing.rollout,
        audit.at_s,
        audit.event.value,
        audit.before.value,
        audit.after.value,
        audit.stage,
        audit.share_bp,
        audit.reason,
        audit.actor,
        change.policy,
        change.evidence,
        "",
    )
    same = (rollout_events.c.identity == audit.identity) & (rollout_events.c.bucket == audit.bucket)
    last = select(rollout_events.c.chain).where(same).order_by(rollout_events.c.id.desc()).limit(1)
    chain = chain_of(connection.execute(last).scalar() or "", row)
    values = msgspec.structs.asdict(row)
    del values["id"]
    connection.execute(insert(rollout_events).values(**{**values, "chain": chain}))
