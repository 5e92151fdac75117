"""What a guard of the policy becomes."""

import pytest

from gateway.control import guards
from gateway.control.guards import Shape, Source, series_of
from gateway.core.evidence import Feed, Form, Overdue
from gateway.model.proving import Guard


def by_name(guard: Guard) -> dict[str, guards.Wanted]:
    return {one.name: one for one in series_of(guard)}


def test_an_error_guard_is_a_vote_by_dispatch_with_a_late_and_a_shadow_series() -> None:
    """What fails after the deadline counts in the late one; mirrored legs in the shadow one, in shadow stages alone."""
    found = by_name(Guard("errors", "error_rate", limit=0.01, feed="vote", block_s=10.0, deadline_s=30.0))
    assert set(found) == {"errors", "errors.late", "errors.shadow"}
    live = found["errors"].spec
    assert (live.form, live.feed, live.deadline_s, live.announced) == (Form.RATE, Feed.VOTE, 30.0, True)
    assert live.overdue is Overdue.GOOD
    assert found["errors.late"].spec.deadline_s == 600.0
    assert not found["errors.late"].asked
    assert (found["errors.shadow"].stages, found["errors.shadow"].spec.announced) == ("shadow", False)


def test_each_bound_of_a_guard_is_a_series() -> None:
    """A limit, a margin and a ratio ask three questions."""
    found = by_name(Guard("json", "format_error_rate", limit=0.02, margin=0.005, ratio=1.0, feed="product"))
    assert {name: one.shape for name, one in found.items()} == {
        "json": Shape.RATE,
        "json.margin": Shape.MARGIN,
        "json.ratio": Shape.SHARE,
        "json.shadow": Shape.RATE,
        "json.margin.shadow": Shape.PAIR,
    }
    assert found["json.ratio"].calm
    assert not by_name(Guard("json", "format_error_rate", ratio=1.5, feed="product"))["json.ratio"].calm
    assert {name for name, one in found.items() if one.twin} == {"json", "json.shadow"}
    assert {one.stages for name, one in found.items() if "shadow" in name} == {"shadow"}


def test_session_votes_wait_for_the_conversation_and_feedback_for_a_person() -> None:
    """Checks are announced, words are not: their blocks wait until nobody may speak any more."""
    json = by_name(Guard("json", "format_error_rate", limit=0.02, feed="session"))["json"]
    assert (json.shape, json.spec.form, json.spec.deadline_s) == (Shape.SESSION, Form.SESSION, 660.0)
    assert json.spec.announced
    feedback = by_name(Guard("f", "feedback_rate", limit=0.1, feed="session"))["f"]
    assert (feedback.shape, feedback.source, feedback.spec.announced) == (Shape.SESSION, Source.FEEDBACK, False)
    assert feedback.spec.deadline_s == guards.FEEDBACK_D_S + guards.TURN_S
    by_answer = by_name(Guard("f", "feedback_rate", limit=0.1, ratio=1.0, feed="product"))
    assert (by_answer["f"].shape, by_answer["f.ratio"].shape) == (Shape.RATE, Shape.SHARE)
    assert {one.spec.deadline_s for one in by_answer.values()} == {guards.FEEDBACK_D_S}
    assert {guards.idle_s(one.guard) for one in (json, feedback)} == {60.0, guards.FEEDBACK_D_S}


def test_latency_guards_are_exceedances_and_ratios_shares() -> None:
    """P99 becomes 1 %; without a limit, the baseline's quantile is the threshold."""
    found = by_name(Guard("ttft", "ttft", limit=2.0, quantile=0.99, or_ratio=1.2, feed="vote", block_s=30.0))
    assert found["ttft"].spec.limit == 0.01
    assert set(found) == {"ttft", "ttft.late", "ttft.shadow"}
    relative = by_name(Guard("ttft", "ttft", quantile=0.99, or_ratio=1.2))
    assert set(relative) == {"ttft.ratio", "ttft.ratio.late"}
    assert {one.spec.form for one in relative.values()} == {Form.SHARE}
    assert guards.ratio_of(relative["ttft.ratio"].guard) == 1.2


@pytest.mark.parametrize("metric", ["ttft", "tpot", "token_gap", "total"])
def test_no_latency_guard_passes_without_the_answers_that_last_longest(metric: str) -> None:
    """They are known last: the late series waits ten minutes for them, and beyond the limit of the whole answer."""
    found = by_name(Guard("slow", metric, limit=2.0, quantile=0.95, ratio=1.5, feed="vote", block_s=30.0))
    assert set(found) == {"slow", "slow.late", "slow.shadow", "slow.ratio", "slow.ratio.late"}
    assert (found["slow"].spec.deadline_s, found["slow.ratio"].spec.deadline_s) == (90.0, 120.0)
    for name in ("slow.late", "slow.ratio.late"):
        assert (found[name].spec.deadline_s, found[name].spec.overdue) == (600.0, Overdue.DROP)
        assert found[name].asked
        assert found[name].spec.same_stakes(found[name.removesuffix(".late")].spec)
    hours = by_name(Guard("slow", metric, limit=3_600.0, quantile=0.95))
    assert hours["slow.late"].spec.deadline_s == (3_690.0 if metric == "total" else 600.0)


def test_agreement_is_judged_in_pairs_with_a_guard_on_unscored_ones() -> None:
    """In shadow stages and live ones."""
    found = by_name(Guard("quality", "agreement", margin=0.02))
    assert found["quality"].spec.form is Form.PAIR
    assert found["quality.missing"].spec.limit == guards.MISSING_LIMIT
    assert {one.stages for one in found.values()} == {"both"}


def test_a_likelihood_gap_is_a_pair_on_a_scale_of_three_tolerances() -> None:
    """A gap at the tolerance is a loss of a third, which is the limit; three tolerances are the whole loss."""
    found = by_name(Guard("gap", "likelihood_gap", margin=0.05))
    assert set(found) == {"gap"}
    scale = guards.gap_scale(found["gap"].guard)
    assert scale is not None
    assert found["gap"].spec.limit == scale.limit == pytest.approx(1 / 3)
    assert (scale.loss(0.05), scale.loss(1.0)) == (pytest.approx(1 / 3), 1.0)
    assert guards.gap_scale(Guard("q", "agreement", margin=0.05)) is None


def test_the_fast_path_is_a_meter_of_its_own_within_the_budget() -> None:
    """Half of all, block by block of a second; asked of nobody before a promotion."""
    errors, answers = guards.implicit_series()
    assert (errors.name, answers.name) == (guards.HARD_ERRORS, guards.HARD_ANSWERS)
    assert {(one.spec.limit, one.spec.block_s, one.asked) for one in (errors, answers)} == {(0.5, 1.0, False)}
