"""Stored rows for a report: requests, what became of them, and what ran, streamed so that a million rows need no
memory.

Owns the queries; what is counted is ``core.report``'s. Called by the command line, and by control's report process.
"""

from collections.abc import Iterator
from typing import Any

import orjson
from sqlalchemy import Engine, func, select

from gateway.core.report import REQUEST_COLUMNS, ConsequenceRow, RequestRow, Tally
from gateway.store.records import Filter, matching
from gateway.store.tables import aftermath, deployments, requests

CHUNK = 2_000


def gather(engine: Engine, wanted: Filter, tally: Tally) -> None:
    """Count every matching request and its consequences into ``tally``."""
    tally.add_requests(request_rows(engine, wanted))
    tally.add_consequences(consequence_rows(engine, wanted))
    tally.describe(records(engine))


def request_rows(engine: Engine, wanted: Filter) -> Iterator[RequestRow]:
    """Matching requests in the order of arrival."""
    columns = [requests.c[name] for name in REQUEST_COLUMNS]
    statement = matching(wanted).with_only_columns(*columns).order_by(requests.c.id)
    make = RequestRow._make
    for chunk in _chunks(engine, statement):
        for row in chunk:
            yield make(row)


def table_rows(engine: Engine, wanted: Filter) -> Iterator[Any]:
    """Matching requests with every column of the table in its order, for exports."""
    for chunk in _chunks(engine, matching(wanted).order_by(requests.c.id)):
        yield from chunk


def consequence_rows(engine: Engine, wanted: Filter) -> Iterator[ConsequenceRow]:
    """What became known of matching requests: each kind once a request, feedback by its worst score."""
    statement = (
        matching(wanted)
        .join_from(aftermath, requests, aftermath.c.request_id == requests.c.request_id)
        .with_only_columns(aftermath.c.kind, requests.c.bucket, requests.c.pool, func.min(aftermath.c.score))
        .group_by(aftermath.c.request_id, aftermath.c.kind, requests.c.bucket, requests.c.pool)
    )
    for chunk in _chunks(engine, statement):
        for kind, bucket, pool, score in chunk:
            yield ConsequenceRow(kind, bucket, pool, score)


def checked_by_pool(engine: Engine, since: float) -> dict[str, dict[str, int]]:
    """Checked answers by pool and bucket since a moment."""
    columns = (requests.c.pool, requests.c.bucket, func.count())
    checked = (requests.c.at >= since) & requests.c.score.is_not(None)
    statement = select(*columns).where(checked).group_by(requests.c.pool, requests.c.bucket)
    found: dict[str, dict[str, int]] = {}
    with engine.connect() as connection:
        for pool, bucket, count in connection.execute(statement):
            found.setdefault(pool, {})[bucket] = count
    return found


def records(engine: Engine) -> dict[str, dict[str, Any]]:
    """Every deployment record by its hash."""
    with engine.connect() as connection:
        found = connection.execute(select(deployments.c.hash, deployments.c.record))
        return {row.hash: orjson.loads(row.record) for row in found}


def _chunks(engine: Engine, statement: Any) -> Iterator[Any]:
    """Plain tuples, many at a time, without holding them all."""
    with engine.connect().execution_options(yield_per=CHUNK, stream_results=True) as connection:
        yield from connection.execute(statement).partitions(CHUNK)
