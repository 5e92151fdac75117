"""Pairs in control, with real scorer processes: every pair comes out once, and the counts add up whatever breaks."""

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control import pair_process, pairing
from gateway.control.likelihood import Likelihood, PairGap
from gateway.control.likelihood_caution import Caution
from gateway.control.pair_process import Work
from gateway.control.pairing import Pairing, ScoredPair, Standing, row_of, size_of
from gateway.control.scoring import Scoring
from gateway.core.comparison import Gap
from gateway.model.pair import Count, Pair, Pairs
from gateway.store.pairs import PairRow
from tests.unit.dataplane.pair_values import chat_answer, make_leg, make_pair


class Side:
    """The stage with what it gives out."""

    def __init__(self, scoring: Scoring, **options: Any) -> None:
        self.rows: list[PairRow] = []
        self.heard: list[ScoredPair] = []
        self.scoring = scoring
        self.pairing = Pairing(scoring, self.rows.append, Likelihood(scoring.run, Caution(lambda: 0.0)), **options)
        self.pairing.subscribe(self.heard.append)

    def events(self) -> dict[str, int]:
        return {key[2]: int(row[0]) for key, row in self.pairing.events.rows.items()}


@pytest.fixture
async def side() -> AsyncIterator[Side]:
    made = Side(Scoring(1))
    yield made
    await made.pairing.stop(5.0)
    await made.scoring.stop(5.0)


def pairs(number: int, **fields: Any) -> list[Pair]:
    return [make_pair(request_id=str(n), **fields) for n in range(number)]


async def test_every_pair_is_compared_told_and_kept_once(side: Side, eventually: Callable[..., Any]) -> None:
    """In order, with its scores, and counted as compared; the worker's counts are taken over as they are."""
    side.pairing.take(
        Pairs(0, pairs(20), [Count("rule", "m/chat", "eligible", 25), Count("rule", "m/chat", "mirrored", 22)])
    )
    await eventually(lambda: len(side.rows) == 20)
    assert [row.request_id for row in side.rows] == [str(n) for n in range(20)]
    assert [scored.pair.request_id for scored in side.heard] == [row.request_id for row in side.rows]
    assert side.events() == {"eligible": 25, "mirrored": 22, "compared": 20}


async def test_verdicts_metrics_and_rows_agree(side: Side, eventually: Callable[..., Any]) -> None:
    """A failed candidate counts among the compared and once more as failed; a shed leg is unscored; the interval of the
    excess lies within what a loss can be."""
    failed = make_leg(pool="int4", failure="timeout", answer=b"")
    shed = make_leg(pool="int4", failure="shed", answer=b"")
    side.pairing.take(Pairs(0, [make_pair(), make_pair(candidate=failed), make_pair(candidate=shed)], []))
    await eventually(lambda: len(side.rows) == 3)
    assert side.events() == {"compared": 2, "failed": 1, "unscored": 1}
    assert {key[2]: row[0] for key, row in side.pairing.compared.rows.items()} == {
        "compared": 1.0, "other_failed": 1.0, "unscored": 1.0,
    }  # fmt: skip
    assert [(row.verdict, row.loss, row.promotion) for row in side.rows] == [
        ("compared", 0.0, 0.0), ("other_failed", 1.0, 1.0), ("unscored", None, 1.0),
    ]  # fmt: skip
    families = {family.name: family for family in side.pairing.families()}
    key = ("m/chat", "int4")
    assert families["quantgate_excess_mean"].samples[key] == (0.5,)
    assert -1.0 <= families["quantgate_excess_low"].samples[key][0] <= 0.5
    assert 0.5 <= families["quantgate_excess_high"].samples[key][0] <= 1.0


async def test_a_dead_scorer_makes_its_pairs_missing(
    side: Side, eventually: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are told as unscored, with the worst value for promotion; the next batch gets a new process."""
    with monkeypatch.context() as patch:
        patch.setattr(pair_process, "score_pairs", os.abort)
        side.pairing._scoring = _Dying(side.scoring)  # type: ignore[assignment]
        side.pairing.take(Pairs(0, pairs(2), []))
        await eventually(lambda: len(side.rows) == 2)
    side.pairing._scoring = side.scoring
    side.pairing.take(Pairs(0, pairs(1), []))
    await eventually(lambda: len(side.rows) == 3)
    assert [(row.verdict, row.unscored, row.promotion) for row in side.rows] == [
        ("unscored", "comparator_error", 1.0), ("unscored", "comparator_error", 1.0), ("compared", "", 0.0),
    ]  # fmt: skip
    assert side.events() == {"unscored": 2, "compared": 1}


class _Dying:
    """Sends the process something that ends it."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring

    async def run(self, _work: object, _data: bytes) -> bytes:
        return await self._scoring.run(_abort, b"")


def _abort(_data: bytes) -> bytes:
    os.abort()


async def test_what_does_not_fit_is_dropped_and_counted() -> None:
    """Bounded in bytes, whatever a worker sends."""
    pair = make_pair()
    side = Side(Scoring(0), waiting_bytes=3 * size_of(pair))
    side.pairing._running = 2  # nothing is taken up
    side.pairing.take(Pairs(0, pairs(5), []))
    assert side.events() == {"buffer_full": 2}


async def test_at_the_end_what_waits_is_counted() -> None:
    """A control that stops tells of each pair that it could not compare."""
    side = Side(Scoring(0))
    side.pairing._running = 2
    side.pairing._idle.clear()
    side.pairing.take(Pairs(0, pairs(3), []))
    await side.pairing.stop(0.0)
    assert side.events() == {"stopping": 3}


async def test_without_scorers_pairs_are_unscored(eventually: Callable[..., Any]) -> None:
    """``--scorers 0`` compares nothing, and says so."""
    side = Side(Scoring(0))
    side.pairing.take(Pairs(0, pairs(2), []))
    await eventually(lambda: len(side.rows) == 2)
    assert side.events() == {"unscored": 2}


async def test_a_subscriber_that_breaks_stops_nobody(side: Side, eventually: Callable[..., Any]) -> None:
    """The others hear of the pair, and it is kept."""
    side.pairing._subscribers.insert(0, lambda scored: 1 / 0)  # type: ignore[arg-type, return-value]
    side.pairing.take(Pairs(0, pairs(1), []))
    await eventually(lambda: len(side.rows) == 1)
    assert len(side.heard) == 1


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=200))
def test_the_interval_is_one_of_losses(losses: list[float]) -> None:
    """It lies within [-1, 1] however few pairs there are, and around its centre."""
    standing = Standing()
    for loss in losses:
        standing.add(loss)
    interval = standing.interval()
    assert -1.0 <= interval.lower <= interval.upper <= 1.0
    assert standing.number == len(losses)


def test_a_row_has_scores_and_parts_and_no_text() -> None:
    """With the likelihood's details, where there are any."""
    pair = make_pair(
        baseline=make_leg(answer=chat_answer("xylophone 12")),
        candidate=make_leg(pool="int4", answer=chat_answer("marmalade 13")),
        noise=make_leg(answer=chat_answer("xylophone 12")),
    )
    (scores,) = pair_process.decode(pair_process.score_pairs(pairing.msgspec.msgpack.encode(Work([pair], [()]))))
    gap = PairGap(0.25, Gap(0.25, 10, 1.5, 2, 8), None)
    row = row_of(ScoredPair(pair, scores), gap)
    assert orjson.loads(row.parts)["numbers"] == 0.0
    assert orjson.loads(row.noise_parts)["text"] == 1.0
    assert row.likelihood_gap == 0.25
    assert orjson.loads(row.likelihood)["baseline_answer"]["worst_mean_nats"] == 1.5
    assert row.excess == row.loss
    assert not any("xylophone" in str(value) or "marmalade" in str(value) for value in row)
