"""What became known of a request after its answer: feedback, failed tool calls, repeated calls, immediate re-asks."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from gateway.store.inserting import Inserter
from gateway.store.tables import aftermath, requests


class Consequence(NamedTuple):
    """One thing that happened later to ``request_id``; ``by_request_id`` is the request that told of it."""

    at: float
    request_id: str
    kind: str  # feedback | tool_error | repeated_call | re_ask
    tenant: str
    bucket: str
    pool: str
    label: str = ""
    score: float | None = None
    by_request_id: str = ""


def inserter(engine: Engine) -> Inserter:
    """The insert of ``Consequence`` rows."""
    return Inserter(engine, aftermath, Consequence._fields)


def of_request(engine: Engine, request_id: str) -> list[RowMapping]:
    """Everything known about one request, in order."""
    statement = select(aftermath).where(aftermath.c.request_id == request_id).order_by(aftermath.c.id)
    with engine.connect() as connection:
        return list(connection.execute(statement).mappings())


def known(engine: Engine, request_ids: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """(tenant, bucket, pool) of those requests that are on record."""
    columns = (requests.c.request_id, requests.c.tenant, requests.c.bucket, requests.c.pool)
    statement = select(*columns).where(requests.c.request_id.in_(list(request_ids)))
    with engine.connect() as connection:
        return {row.request_id: (row.tenant, row.bucket, row.pool) for row in connection.execute(statement)}
