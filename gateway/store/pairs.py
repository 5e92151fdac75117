"""Compared pairs of shadow traffic: scores and parts, never texts."""

from typing import Any, NamedTuple

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from gateway.store.records import PAGE_MOST, Inserter
from gateway.store.tables import pairs


class PairRow(NamedTuple):
    """One pair.

    ``agreement``: candidate with baseline; ``noise``: baseline with itself; ``excess``: noise minus agreement. ``loss``
    is what the judge's meter gets, ``promotion`` what counts for advancing; null = nothing to say. ``parts`` is JSON
    {part: score}; ``verdict`` is the comparison's: compared, other_failed, reference_failed, both_failed, unscored.
    """

    request_id: str
    at: float
    rule: str
    tenant: str
    bucket: str
    task: str
    baseline: str
    candidate: str
    verdict: str
    kind: str
    agreement: float | None
    noise: float | None
    excess: float | None
    loss: float | None
    promotion: float | None
    likelihood_gap: float | None
    parts: str
    candidate_failure: str
    baseline_failure: str
    ttft_baseline_s: float
    ttft_candidate_s: float
    total_baseline_s: float
    total_candidate_s: float


def inserter(engine: Engine) -> Inserter:
    """The insert of ``PairRow`` rows."""
    return Inserter(engine, pairs, PairRow._fields)


def of_request(engine: Engine, request_id: str) -> RowMapping | None:
    """The pair of one request."""
    with engine.connect() as connection:
        return connection.execute(select(pairs).where(pairs.c.request_id == request_id).limit(1)).mappings().first()


def page(
    engine: Engine, *, bucket: str = "", candidate: str = "", before: int | None = None, most: int = 100
) -> list[RowMapping]:
    """Pairs newest first, before the given row id."""
    statement: Any = select(pairs).order_by(pairs.c.id.desc()).limit(min(most, PAGE_MOST))
    if bucket:
        statement = statement.where(pairs.c.bucket == bucket)
    if candidate:
        statement = statement.where(pairs.c.candidate == candidate)
    if before is not None:
        statement = statement.where(pairs.c.id < before)
    with engine.connect() as connection:
        return list(connection.execute(statement).mappings())
