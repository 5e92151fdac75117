"""The words around the rollout say what is in the policy, what happened, and when nothing was decided."""

import io
from math import exp, log
from pathlib import Path

import pytest
from rich.console import Console

from gateway.control.rollouts_effect import UNMEASURED_EFFECT
from gateway.core.evidence.ladders import promotion_rate_ladder
from gateway.core.evidence.promotion import ALPHA
from gateway.demo.policy import compiled
from gateway.demo.rollout import summary
from gateway.demo.rollout.findings import Found, checks
from gateway.demo.rollout.notes import Way
from gateway.demo.screen import Screen
from tests.unit.demo.rollout.story import EVENTS, bucket, guard, story

TABLE = compiled(Path("routing_policies/demo-rollout.yaml"))


def shown(found: Found) -> str:
    """The whole summary. It fits a small terminal."""
    out = io.StringIO()
    summary.show(Console(file=out, width=80), found, checks(found))
    text = out.getvalue()
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    return text


def joined(text: str) -> str:
    """Without line breaks."""
    return " ".join(text.split())


def test_the_head_says_what_the_policy_says() -> None:
    """Candidate, shares, guards with their limits, and that the limits are wide."""
    out = io.StringIO()
    summary.show_head(Screen(Console(file=out, width=100)), TABLE, TABLE.rollouts[0], (2, 3), 6)
    text = joined(out.getvalue())
    assert "q4 is to take over two kinds of requests from bf16" in text
    assert "generation 2 → 3" in text
    assert "q4 gets 25 %, 50 %, 100 % while its guards allow: errors, cut-off, wrong ≤ 15 %" in text
    assert "Limits are wide" in text


@pytest.mark.parametrize(
    ("limit", "said"),
    [(TABLE.guards["wrong"].limit, summary.QUICK_ANSWERS), (0.01, summary.STRICT_ANSWERS)],
)
def test_how_many_answers_pass_a_stage(limit: float, said: int) -> None:
    """The numbers that are told are those of the judge, while the baseline has not shown how outcomes repeat."""
    per_answer = promotion_rate_ladder(limit).log_zero

    def evidence(answers: int) -> float:
        return log(sum(exp(answers * step) for step in per_answer) / len(per_answer))

    enough = UNMEASURED_EFFECT * log(1.0 / ALPHA)
    assert evidence(said - 1) < enough <= evidence(said)


def test_phases_and_verdicts() -> None:
    """Every phase with what each pool did in it, and both decisions with the requests that they took."""
    text = shown(story())
    for said in ("not yet", "25 %", "50 %", "promoted", "rolled back", "the end", "2 of 2"):
        assert said in text
    flat = joined(text)
    assert "JSON by a schema: q4 is promoted after 2 requests, 2 of them by q4, in 6 s: every guard had enough" in flat
    assert "JSON in free form: q4 is rolled back after 2 requests, 2 of them by q4, in 4 s: because of fail" in flat
    assert "5 of 5 checks hold: 9 requests in 12 s." in flat


def test_not_enough_evidence_is_a_verdict() -> None:
    """What is missing is told with what there is, and nothing is claimed."""
    waiting = bucket(Way.SCHEMA, series=(guard("errors", log_evidence=5.0), guard(log_evidence=2.9)))
    events = {Way.SCHEMA: EVENTS[Way.SCHEMA][:1]}
    text = joined(shown(story(buckets={Way.SCHEMA: waiting}, events=events, decisions={})))
    assert "JSON by a schema: not enough evidence yet after 12 s; q4 stays at 25 %." in text
    assert "Evidence until now: wrong 18 of 89." in text
    assert "JSON in free form: no request of it was seen" in text
    assert "promoted" not in text


def test_a_check_that_fails_is_told() -> None:
    """In the sum too."""
    found = story()
    spoiled = story(evidence=type(found.evidence)(found.evidence.items, found.evidence.answers, [], [], 0))
    assert "FAILS" in shown(spoiled)
    assert "1 of 5 checks hold" in joined(shown(spoiled))
