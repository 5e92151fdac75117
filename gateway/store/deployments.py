"""What ran in a pool: the deployment record by its hash, so that a request row needs 64 characters to say it."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import Engine, insert, select

from gateway.store.tables import deployments


def hash_of(record: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical record, in hex."""
    return sha256(orjson.dumps(dict(record), option=orjson.OPT_SORT_KEYS)).hexdigest()


def put(engine: Engine, pool: str, record: Mapping[str, Any], at: float) -> str:
    """Keep a record once; returns its hash."""
    digest = hash_of(record)
    with engine.begin() as connection:
        if connection.execute(select(deployments.c.hash).where(deployments.c.hash == digest)).first() is None:
            text = orjson.dumps(dict(record), option=orjson.OPT_SORT_KEYS).decode()
            connection.execute(insert(deployments).values(hash=digest, pool=pool, first_seen_at=at, record=text))
    return digest


def get(engine: Engine, digest: str) -> dict[str, Any] | None:
    """A record by its hash."""
    with engine.connect() as connection:
        row = connection.execute(select(deployments.c.record).where(deployments.c.hash == digest)).first()
    return orjson.loads(row.record) if row is not None else None
