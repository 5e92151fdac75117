"""Compared pairs of shadow traffic: scores and parts, never texts."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from gateway.store.inserting import Inserter
from gateway.store.selecting import PAGE_MOST, between, having, newest_first
from gateway.store.tables import pairs

CHUNK = 2_000


class PairRow(NamedTuple):
    """One pair.

    ``agreement``: candidate with baseline; ``noise``: baseline with itself; ``excess``: noise minus agreement. ``loss``
    is what the judge's meter gets, ``promotion`` what counts for advancing; null = nothing to say. ``parts`` is JSON
    {part: score} of the agreement, ``noise_parts`` of the noise; ``verdict`` is the comparison's: compared,
    other_failed, reference_failed, both_failed, unscored. ``likelihood_gap`` is in nats per token, its details in
    ``likelihood`` as JSON.
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
    capped_by: str = ""
    unscored: str = ""
    noise_failure: str = ""
    noise_parts: str = "{}"
    likelihood: str = "{}"


class Filter(NamedTuple):
    """Which pairs: empty and None match all. ``failed``: the candidate gave no answer, or nothing could be compared."""

    since: float | None = None
    until: float | None = None
    bucket: str = ""
    baseline: str = ""
    candidate: str = ""
    rule: str = ""
    tenant: str = ""
    verdict: str = ""
    failed: bool = False


class LossRow(NamedTuple):
    """One pair for the account of excess differences."""

    bucket: str
    baseline: str
    candidate: str
    verdict: str
    agreement: float | None
    noise: float | None
    loss: float | None
    likelihood_gap: float | None


def inserter(engine: Engine) -> Inserter:
    """The insert of ``PairRow`` rows."""
    return Inserter(engine, pairs, PairRow._fields)


def of_request(engine: Engine, request_id: str) -> RowMapping | None:
    """The pair of one request."""
    with engine.connect() as connection:
        return connection.execute(select(pairs).where(pairs.c.request_id == request_id).limit(1)).mappings().first()


def page(engine: Engine, wanted: Filter, before: int | None = None, most: int = 100) -> list[RowMapping]:
    """Pairs newest first, before the given row id."""
    statement = newest_first(_matching(select(pairs), wanted), pairs, before, min(most, PAGE_MOST))
    with engine.connect() as connection:
        return list(connection.execute(statement).mappings())


def losses(engine: Engine, wanted: Filter) -> Iterator[LossRow]:
    """What each matching pair says for the judge, in the order of arrival, without holding them all."""
    columns = (pairs.c[name] for name in LossRow._fields)
    statement = _matching(select(*columns), wanted).order_by(pairs.c.id)
    with engine.connect().execution_options(yield_per=CHUNK, stream_results=True) as connection:
        for chunk in connection.execute(statement).partitions(CHUNK):
            yield from (LossRow(*row) for row in chunk)


def _matching(statement: Any, wanted: Filter) -> Any:
    statement = between(statement, pairs, wanted.since, wanted.until)
    words = ("bucket", "baseline", "candidate", "rule", "tenant", "verdict")
    statement = having(statement, pairs, **{name: getattr(wanted, name) for name in words})
    if wanted.failed:
        statement = statement.where(pairs.c.verdict.in_(("other_failed", "both_failed", "unscored")))
    return statement
