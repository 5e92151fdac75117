"""The engine as a whole: what a rollout does under simulated traffic, a second at a time."""

import dataclasses

import orjson
import pytest

from gateway.core.consequence import Consequence, Kind, Subject
from gateway.core.evidence import Budget, SeriesKey
from gateway.core.evidence.pairs import PairLoss
from gateway.core.rollout import Cause, Event, EventKind, State
from gateway.model.pair import Leg, Pair
from gateway.model.table import Table
from tests.unit.control.rollout_rig import EngineRig, inspection, request_of, rollout_policy
from tests.unit.dataplane.outcome_values import with_fields

BUCKET = "m/short/chat"
OTHER = "m/medium/code"


def live(**options: str) -> EngineRig:
    """A rig whose bucket is at 50 %."""
    rig = EngineRig(rollout_policy(**options))
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(20):
        rig.second()
    return rig


def kinds(rig: EngineRig) -> list[str]:
    return [proposal.event.kind.value for proposal in rig.stepped]


def test_a_healthy_candidate_is_promoted_by_evidence_and_stays() -> None:
    """Every stage passes; drift watch goes on and does not trip."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.PROMOTED))
    assert kinds(rig) == ["begin", "pass", "pass"]
    for _ in range(300):
        rig.second(errors=0.003, base_errors=0.003)
    assert rig.at(State.PROMOTED)


def test_nothing_begins_before_the_pool_is_ready_or_the_past_is_known() -> None:
    """A cold start must not count as failure, and a stored rollback must not be overlooked."""
    rig = EngineRig(rollout_policy())
    rig.world.is_ready = False
    for _ in range(5):
        rig.second()
    assert rig.at(State.PENDING)
    rig.world.is_ready = True
    rig.second()
    assert rig.at(State.STEPPING)


def test_nothing_advances_while_the_pool_serves_nothing() -> None:
    """All evidence is there, but of a pool that is away now: it is no reason to give it more. Rollbacks do not wait."""
    rig = live()
    rig.world.away = "int4/0 is unhealthy"
    for _ in range(300):
        rig.second()
    assert rig.at(State.STEPPING)
    rig.world.away = ""
    rig.second()
    assert kinds(rig) == ["begin", "pass"]
    rig.world.away = "int4/0 is ejected, for its answers fail"
    rig.until(lambda: rig.at(State.ROLLED_BACK), errors=1.0)


def test_a_pool_that_breaks_json_is_out_within_seconds_and_stays_out() -> None:
    """Latched: a long idle time afterwards is no pass (B119)."""
    rig = live()
    assert rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0) <= 8
    for _ in range(100):
        rig.second(rate=0)
    assert rig.at(State.ROLLED_BACK)
    assert rig.state().share_bp == -1
    assert kinds(rig).count("fail") == 1


def test_errors_in_a_row_are_noticed_by_the_fast_path() -> None:
    """About twenty in a row on a fresh canary, whatever the error guard's block length."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    assert rig.until(lambda: rig.at(State.ROLLED_BACK), errors=1.0) <= 8
    assert "hard_errors" in rig.stepped[-1].event.reason


def test_a_drift_after_promotion_is_found() -> None:
    """The same meters, drip only."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.PROMOTED))
    assert rig.until(lambda: rig.at(State.ROLLED_BACK), json=0.3) < 60


def test_an_incident_of_the_platform_holds_and_is_over_after_an_hour_of_calm() -> None:
    """The baseline suffers as well: no rollback; the pool keeps its share and goes on later."""
    rig = live()
    rig.until(lambda: rig.at(State.HOLDING), errors=0.3, base_errors=0.3)
    assert (rig.state().cause, rig.state().share_bp) == (Cause.INCIDENT, 5_000)
    assert "incident of the platform" in rig.state().reason
    rig.now_s += 3_700
    for _ in range(3):
        rig.second()
    assert rig.at(State.STEPPING)


def test_a_critical_guard_does_not_ask_the_twin() -> None:
    """It decides alone."""
    guards = (
        "\n  json: {metric: format_error_rate, limit: 1%, feed: product, block: 1s, deadline: 5s, critical: true}\n"
    )
    rig = live(guards=guards, names="json")
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=0.2, base_json=0.2)
    assert "json of int4" in rig.stepped[-1].event.reason


def test_a_rollback_needs_no_window_and_works_in_a_hold_and_under_the_brake() -> None:
    """B121: a breach in a waiting phase is a rollback all the same."""
    for kind in (EventKind.HOLD, EventKind.PAUSE):
        rig = live()
        proposal = rig.engine.command((rig.state().identity, BUCKET), Event(kind, rig.now_s, "look", "ann"))
        assert not isinstance(proposal, str)
        rig.engine.accept(proposal)
        if kind is EventKind.HOLD:
            rig.until(lambda rig=rig: rig.at(State.ROLLED_BACK), json=1.0)
        else:
            assert rig.state().share_bp == 0


def test_one_bad_bucket_takes_no_other_with_it() -> None:
    """B110: the slices that span both are explained by the one that tripped alone."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    rig.until(lambda: rig.at(State.STEPPING, OTHER), bucket=OTHER)
    for _ in range(30):
        rig.second()
        rig.second(OTHER)
    for _ in range(20):
        rig.second(json=1.0)
        rig.second(OTHER)
    assert rig.at(State.ROLLED_BACK)
    assert rig.at(State.STEPPING, OTHER)


def test_many_thin_buckets_are_found_by_their_slice() -> None:
    """Each alone has too little; together they are rolled back."""
    rig = EngineRig(
        rollout_policy(
            guards="\n  json: {metric: format_error_rate, limit: 1%, feed: product, block: 10s, deadline: 5s}\n",
            names="json",
        )
    )
    buckets = [f"m/short/chat{number}" for number in range(12)]
    for bucket in buckets:
        rig.until(lambda bucket=bucket: rig.at(State.STEPPING, bucket), bucket=bucket, rate=1)
    for turn in range(400):
        if any(rig.at(State.ROLLED_BACK, bucket) for bucket in buckets):
            break
        rig.second(buckets[turn % 12], rate=1, json=0.25)
    out = [proposal for proposal in rig.stepped if proposal.event.kind is EventKind.FAIL]
    assert out
    assert any("in *" in proposal.event.reason or "length=" in proposal.event.reason for proposal in out)


@pytest.mark.parametrize("restarts", [False, True])
def test_the_brake_freezes_what_did_not_trip(restarts: bool) -> None:
    """Three of four buckets at once: the fourth does not advance until it is calm, also over a restart."""
    rig = EngineRig(rollout_policy())
    buckets = [f"m/short/t{number}" for number in range(4)]
    for bucket in buckets:
        rig.until(lambda bucket=bucket: rig.at(State.STEPPING, bucket), bucket=bucket)
    for _ in range(30):
        if rig.at(State.FROZEN, buckets[3]):
            break
        for bucket in buckets[:3]:
            rig.second(bucket, json=1.0)
        rig.second(buckets[3])
    assert rig.at(State.FROZEN, buckets[3])
    assert rig.state(buckets[3]).share_bp == 5_000
    if restarts:
        rig.restart()
        rig.second("m/short/new")
        rig.second("m/short/new")
        assert rig.at(State.PENDING, "m/short/new"), "nothing begins meanwhile"
    rig.now_s += 1_000
    rig.second(buckets[3])
    rig.second(buckets[3])
    assert rig.at(State.STEPPING, buckets[3])


def test_a_restart_continues_with_the_same_state_and_the_same_suspicion() -> None:
    """Standings latch, meters keep their money, and without the meters the latch holds all the same."""
    rig = live()
    for _ in range(40):
        rig.second(json=0.05)
    key = SeriesKey("json", BUCKET, "int4")
    money = rig.engine.judge.series(key).total_at(rig.now_s)
    rig.restart()
    assert rig.engine.judge.series(key).total_at(rig.now_s) == pytest.approx(money)
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    for with_meters in (True, False):
        rig.restart(with_meters=with_meters)
        for _ in range(10):
            rig.second()
        assert rig.at(State.ROLLED_BACK)
        assert rig.engine.buckets.shares()[rig.state().identity][BUCKET] == -1


def test_a_trip_that_could_not_be_stored_is_proposed_again() -> None:
    """Killed or refused between verdict and storing: the verdict stays latched."""
    rig = live()
    rig.store = False
    for _ in range(15):
        rig.second(json=1.0)
    assert rig.at(State.STEPPING)
    rig.store = True
    rig.restart()
    rig.second(rate=0)
    assert rig.at(State.ROLLED_BACK)


def test_stages_that_leave_no_place_begin_anew_with_their_own_time_and_evidence() -> None:
    """A mirrored bucket whose shadow stage is taken out does not serve half of its clients on the old stage's time."""
    later = "{weight: 50%, at_least: {time: 60s, requests: 300}}, {weight: 100%, at_least: {time: 60s}}"
    guards = "\n  errors: {metric: error_rate, limit: 1%}\n"

    def policy(stages: str) -> Table:
        return rollout_policy(guards=guards, names="errors", stages=stages)

    rig = EngineRig(policy(f"[{{shadow: 5%, at_least: {{time: 60s}}}}, {later}]"))
    rig.until(lambda: rig.at(State.SHADOWING))
    rig.now_s += 3_600.0
    rig.turn()
    rig.table = policy(f"[{later}]")
    rig.engine.apply(rig.table, rig.budget, {"int4": "r-a", "bf16": "r-b"}, rig.now_s)
    rig.turn()
    placed, begun = (proposal.stepped.standing for proposal in rig.stepped[-2:])
    assert (placed.state, placed.share_bp, begun.state) == (State.PENDING, 0, State.STEPPING)
    begun_s = rig.state().stage_since_s
    assert (rig.state().share_bp, begun_s) == (5_000, rig.now_s)
    assert not rig.engine.runs[rig.table.rollouts[0].identity, "m/short/chat"].feed.shadowing
    rig.until(lambda: rig.state().stage == 1)
    assert rig.state().stage_since_s - begun_s > 60.0


def test_a_reload_keeps_the_state_and_another_deployment_starts_anew() -> None:
    """Other guards rebuild the series; a changed image is another pool."""
    rig = live()
    other = rollout_policy(guards="\n  errors: {metric: error_rate, limit: 2%}\n", names="errors")
    rig.engine.apply(other, Budget(), {"int4": "r-a", "bf16": "r-b"}, rig.now_s)
    rig.second()
    assert rig.at(State.STEPPING)
    rig.engine.apply(other, Budget(), {"int4": "r-new", "bf16": "r-b"}, rig.now_s)
    rig.turn()
    assert (rig.state().state, rig.state().record) == (State.PENDING, "r-new")
    assert kinds(rig)[-1] == "changed"


def test_a_rollout_that_is_gone_from_the_policy_has_no_share_and_comes_back_latched() -> None:
    """What no rollout names is as the route says; the verdict is not forgotten."""
    rig = live()
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    rig.engine.apply(dataclasses.replace(rig.table, rollouts=()), Budget(), {}, rig.now_s)
    assert rig.engine.buckets.shares() == {}
    rig.engine.apply(rig.table, Budget(), {"int4": "r-a"}, rig.now_s)
    assert rig.engine.buckets.shares()[rig.state().identity][BUCKET] == -1


def test_re_entry_comes_after_its_time_at_the_first_stage_with_half_the_error_level() -> None:
    """As often as the policy says."""
    rig = live(extra="reentry: {after: 60s, most: 1}")
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    needed = [judged.verdict.needed_log_evidence for judged in next(iter(rig.engine.runs.values())).judged(rig.now_s)]
    rig.now_s += 61
    rig.until(lambda: rig.at(State.STEPPING), rate=1)
    assert rig.state().entries == 1
    again = [judged.verdict.needed_log_evidence for judged in next(iter(rig.engine.runs.values())).judged(rig.now_s)]
    assert all(later > before for later, before in zip(again, needed, strict=True))
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    rig.now_s += 10_000
    for _ in range(3):
        rig.second()
    assert rig.at(State.ROLLED_BACK)


def test_without_evidence_enough_a_stage_is_held_when_its_time_is_up() -> None:
    """No data is never a pass (B120), and somebody is told what is missing."""
    stages = "[{weight: 50%, at_least: {time: 10s}, at_most: {time: 60s}}, {weight: 100%}]"
    guards = "\n  numbers: {metric: check, check: numbers, limit: 1%}\n"
    rig = live(stages=stages, guards=guards, names="numbers")
    rig.until(lambda: rig.at(State.HOLDING))
    assert rig.state().cause is Cause.TIME
    assert "no data" in rig.state().reason


def test_more_series_than_slots_is_an_error_and_no_silent_overdraft() -> None:
    """The bucket stays out and says why."""
    rig = EngineRig(rollout_policy(), budget=Budget(slots=5))
    for _ in range(5):
        rig.second()
    assert rig.at(State.PENDING)
    assert "slots" in rig.engine.buckets.refused[rig.state().identity, BUCKET]
    assert rig.engine.buckets.shares()[rig.state().identity][BUCKET] == 0


def test_every_decision_carries_its_evidence() -> None:
    """Counts, money, intervals, the meter's steps, the requests to blame, and what the baseline can take."""
    rig = live()
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    evidence = orjson.loads(rig.stepped[-1].evidence)
    json = next(series for series in evidence["series"] if series["series"] == "json")
    assert json["trip"]["total"] >= 1.0 or json["suspicion"] > -5
    assert json["history"]
    assert json["baseline"]["outcomes"] > 0
    assert evidence["requests"]["json"]
    assert "429" in evidence["headroom"] or "room" in evidence["headroom"]


def test_commands_answer_with_a_proposal_or_the_reason_why_not() -> None:
    """Unknown buckets and senseless commands are told apart."""
    rig = live()
    at = (rig.state().identity, BUCKET)
    event = Event(EventKind.RESUME, rig.now_s, "go", "ann")
    assert "nothing to resume" in str(rig.engine.command(at, event))
    assert "no such bucket" in str(rig.engine.command(("x", BUCKET), event))


def test_shadow_pairs_promote_to_the_first_live_stage_and_trip_in_shadow() -> None:
    """Agreement and errors of the candidate's leg; nobody is served by it."""
    stages = "[{shadow: 10%, at_least: {time: 10s, pairs: 200}}, {weight: 50%, at_least: {time: 10s}}]"
    guards = """
  errors: {metric: error_rate, limit: 2%, block: 1s}
  quality: {metric: agreement, margin_to_baseline: 10%, block: 1s, deadline: 5s}
"""
    for loss, failure, ends in (
        (0.0, "", State.STEPPING),
        (1.0, "", State.ROLLED_BACK),
        (0.0, "status_5xx", State.ROLLED_BACK),
    ):
        rig = EngineRig(rollout_policy(stages=stages, guards=guards, names="errors, quality"))
        rig.until(lambda rig=rig: rig.at(State.SHADOWING))
        for _ in range(400):
            if rig.at(ends):
                break
            for number in range(5):
                rig.engine.take_pair(pair_of(rig, number, failure), PairLoss(trip=loss, promotion=loss))
            rig.second()
        assert rig.at(ends), (loss, failure, rig.state())
        assert rig.state().share_bp in (5_000, -1)


def test_checks_and_likelihood_of_mirrored_answers_trip_before_anybody_is_served() -> None:
    """Broken JSON against a limit and against the baseline on the same prompt, and a gap in likelihood."""
    stages = "[{shadow: 10%, at_least: {time: 10s, pairs: 200}}, {weight: 50%}]"
    guards = """
  json: {metric: format_error_rate, limit: 2%, block: 1s}
  same: {metric: format_error_rate, margin_to_baseline: 2%, block: 1s}
  gap: {metric: likelihood_gap, margin_to_baseline: 5%, block: 1s, deadline: 5s}
"""
    for name in ("json", "same", "gap"):
        rig = EngineRig(rollout_policy(stages=stages, guards=guards, names=name))
        rig.until(lambda rig=rig: rig.at(State.SHADOWING))
        for _ in range(300):
            if rig.at(State.ROLLED_BACK):
                break
            for number in range(5):
                pair = pair_of(rig, number, "")
                if name == "gap":
                    rig.engine.take_gap(pair, 0.3)
                else:
                    rig.engine.take_pair(pair, None, inspection(), inspection(json=False))
            rig.second()
        assert rig.at(State.ROLLED_BACK), name
        assert f"{name}" in rig.stepped[-1].event.reason


def pair_of(rig: EngineRig, number: int, failure: str) -> Pair:
    leg = Leg("bf16", "bf16/0", 200, "", b"", 0.1, 1.0, 1.1, 10, 11)
    other = Leg("int4", "int4/0", 200, failure, b"", 0.1, 1.0, 1.1, 10, 11)
    return Pair(f"p{number}", rig.now_s, "s", "t", "m", BUCKET, "chat", "chat", True, "c", b"", leg, other, leg)


def test_feedback_and_failed_tools_count_against_the_pool_that_answered() -> None:
    """By the second of the answer, not of the feedback."""
    guards = """
  feedback: {metric: feedback_rate, limit: 5%, block: 1s, deadline: 30s}
  tools: {metric: tool_failure_rate, limit: 5%, deadline: 20s}
"""
    for kind in (Kind.FEEDBACK, Kind.TOOL_ERROR):
        rig = live(guards=guards, names="feedback, tools")
        for number in range(200):
            if rig.at(State.ROLLED_BACK):
                break
            subject = Subject(f"r{number}", rig.now_s, "t", BUCKET, "int4", "", "int4-all")
            rig.engine.take_consequence(Consequence(kind, subject), 1.0, rig.now_s)
            rig.second(rate=4)
        assert rig.at(State.ROLLED_BACK), kind
        assert ("feedback" if kind is Kind.FEEDBACK else "tools") in rig.stepped[-1].event.reason


def test_feedback_on_answers_outside_the_rollout_is_not_its_evidence() -> None:
    """A tenant that may use only the baseline, and is content, must not be what the candidate is compared with."""
    rig = live(guards="\n  feedback: {metric: feedback_rate, margin_to_baseline: 5%}\n", names="feedback")
    booked: list[str] = []
    for run in rig.engine.runs.values():
        run.feed.take_consequence = lambda found, _bad, _now_s: booked.append(found.subject.request_id)  # type: ignore
    for name, bucket, rollout in (
        ("mine", BUCKET, "int4-all"),
        ("of-none", BUCKET, ""),
        ("of-another", BUCKET, "fp8-all"),
        ("elsewhere", "m/long/code", "int4-all"),
    ):
        subject = Subject(name, rig.now_s, "t", bucket, "bf16", "", rollout)
        rig.engine.take_consequence(Consequence(Kind.FEEDBACK, subject), 0.0, rig.now_s)
    assert booked == ["mine"]


def test_slow_answers_trip_the_latency_guard_and_equal_slowness_in_both_does_not_blame() -> None:
    """An absolute limit, with the baseline's multiple as the alternative."""
    guards = "\n  ttft: {metric: ttft, quantile: 95%, limit: 2s, block: 5s}\n"
    rig = live(guards=guards, names="ttft")
    rig.until(lambda: rig.at(State.ROLLED_BACK), slow=1.0)
    assert "ttft of int4" in rig.stepped[-1].event.reason
    both = live(guards=guards, names="ttft")
    both.until(lambda: both.at(State.HOLDING), slow=1.0, base_slow=1.0)


def test_a_pool_against_itself_is_not_rolled_back_in_ten_thousand_requests() -> None:
    """B114: equal pools that fail now and then, with pairs that differ either way."""
    guards = """
  errors: {metric: error_rate, limit: 1%}
  json: {metric: format_error_rate, margin_to_baseline: 1%, feed: product, block: 5s, deadline: 5s}
  quality: {metric: agreement, margin_to_baseline: 3%, block: 5s, deadline: 5s}
"""
    rig = live(guards=guards, names="errors, json, quality")
    for _ in range(400):
        rig.second(rate=25, errors=0.003, base_errors=0.003, json=0.03, base_json=0.03)
        loss = (rig.random.random() < 0.1) - (rig.random.random() < 0.1)
        rig.engine.take_pair(pair_of(rig, 1, ""), PairLoss(float(loss), float(loss)))
    assert not {"fail", "incident"} & set(kinds(rig))


def test_one_error_in_three_requests_is_no_verdict() -> None:
    """B117: near-zero traffic, a transient error is a huge percentage and says little."""
    rig = live()
    for turn in range(60):
        rig.second(rate=1 if turn % 20 == 0 else 0, errors=float(turn == 20))
    assert rig.at(State.STEPPING)


def test_one_buckets_fault_does_not_keep_the_others_from_being_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted; a bad pool still leaves the other bucket."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    rig.until(lambda: rig.at(State.STEPPING, OTHER), bucket=OTHER)

    def broken(now_s: float) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(rig.engine.runs[rig.state(OTHER).identity, OTHER].feed, "advance", broken)
    for _ in range(20):
        rig.second()
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    assert rig.engine.faults.rows["int4-all",][0] > 0


def test_outcomes_of_no_rollout_or_other_pools_change_nothing() -> None:
    """If no rollout names a pool, nothing changes for it."""
    rig = live()
    before = dict(rig.engine.standings)
    stranger = request_of("m/other/x", "fp8", rig.now_s, "x1")
    rig.engine.take_outcomes([with_fields(stranger, rollout="")], rig.now_s)
    assert rig.engine.standings == before
