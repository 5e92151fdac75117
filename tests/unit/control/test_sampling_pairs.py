"""Which pairs' texts are kept: by the same rules as any sample, redacted, sealed, with both answers."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.control import pair_process
from gateway.control.pair_process import PairScores
from gateway.control.pairing import ScoredPair
from gateway.control.sampling import Sampling
from gateway.core.comparison import Agreement, Kind, Part, Verdict
from gateway.core.evidence.pairs import PairLoss
from gateway.model.pair import Pair
from gateway.model.proving import Samples
from gateway.store.samples import PAIR, SampleRow, Sealer
from tests.unit.dataplane.pair_values import chat_answer, make_leg, make_pair

KEY = "correct horse battery staple"
FINE = PairScores(Agreement(Verdict.COMPARED, Kind.CHAT, 0.9), None, PairLoss(0.05, 0.05))


def sampling(keep: str | float = "incidents", opted_out: frozenset[str] = frozenset(), **rules: Any) -> Any:
    """A sampler, and what it kept."""
    rows: list[SampleRow] = []
    made = Sampling(rows.append, lambda: 0.5)
    made.configure(Samples(keep=keep, key=KEY, **rules), opted_out)
    return made, rows


def scores(verdict: Verdict = Verdict.COMPARED, *, trip: float | None = 0.0, capped: Part | None = None) -> PairScores:
    agreement = Agreement(verdict, Kind.CHAT, 0.5, capped_by=capped)
    return PairScores(agreement, None, None if trip is None else PairLoss(trip, trip))


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (FINE, False),
        (scores(), False),
        (scores(trip=None), False),
        (scores(trip=0.6), True),
        (scores(capped=Part.REFUSAL), True),
        (scores(Verdict.OTHER_FAILED), True),
        (scores(Verdict.BOTH_FAILED), True),
        (scores(Verdict.REFERENCE_FAILED), False),
        (scores(Verdict.UNSCORED), False),
    ],
)
async def test_what_is_an_incident(found: PairScores, kept: bool, eventually: Callable[..., Any]) -> None:
    """A candidate that failed, a flip, or a difference far beyond the baseline's own; nothing else."""
    made, rows = sampling()
    made.take_pair(ScoredPair(make_pair(), found))
    if kept:
        await eventually(lambda: len(rows) == 1)
    assert (made._sealing, len(rows)) == (0, int(kept))


async def test_both_texts_are_kept_sealed_and_redacted(eventually: Callable[..., Any]) -> None:
    """Each leg's text under the rules' patterns and bound, as a pair of the baseline."""
    made, rows = sampling(keep=1.0, redact=(r"\d{4}",), most_bytes=60)
    pair: Pair = make_pair(
        request=b'{"pin": 4711}' + b" " * 100,
        candidate=make_leg(pool="int4", answer=b"pin 4711 " * 20),
        noise=make_leg(answer=chat_answer("x")),
    )
    made.take_pair(ScoredPair(pair, FINE))
    await eventually(lambda: len(rows) == 1)
    (row,) = rows
    assert (row.request_id, row.reason, row.pool, row.bucket) == ("req-1", PAIR, "bf16", "m/chat")
    opened = Sealer(KEY).open("req-1", row.sealed)
    assert opened.request.startswith(b'{"pin": "[redacted]"}')
    assert len(opened.request) == len(opened.candidate) == 60
    assert b"4711" not in opened.request + opened.answer + opened.candidate + opened.noise
    assert opened.noise


@pytest.mark.parametrize(
    ("keep", "options"),
    [
        ("off", {}),
        (0.4, {}),
        (1.0, {"opted_out": frozenset({"acme"})}),
        (1.0, {"tenants": {"acme": "off"}}),
        ("incidents", {"tenants": {"acme": 0.1}}),
    ],
)
async def test_the_rules_that_keep_nothing(keep: str | float, options: dict[str, Any]) -> None:
    """Off, outside the share, a tenant's own word."""
    made, rows = sampling(keep, **options)
    made.take_pair(ScoredPair(make_pair(), scores(Verdict.OTHER_FAILED)))
    assert (made._sealing, rows) == (0, [])


async def test_a_missing_leg_keeps_nothing() -> None:
    """There is nothing of the candidate to look at."""
    made, rows = sampling(keep=1.0)
    shed = make_pair(candidate=make_leg(failure="shed", answer=b""))
    made.take_pair(ScoredPair(shed, pair_process.unscored(shed)))
    assert (made._sealing, rows) == (0, [])
