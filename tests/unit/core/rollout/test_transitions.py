"""The life of a bucket, and the rules that hold in every state under every event."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.rollout import (
    Audit,
    Cause,
    Event,
    EventKind,
    Notice,
    Notify,
    Persist,
    SetShare,
    Standing,
    StartStage,
    State,
    Stepped,
    begin_standing,
    stage_begun,
    step,
)
from gateway.core.rollout.standing import is_placed, share_of_standing
from gateway.core.rollout.states import COMMANDS
from gateway.model.proving import Rollout, Stage
from tests.unit.core.rollout.conftest import make_plan

PLANS = (
    make_plan(),
    make_plan(approvals=2),
    make_plan(approvals=2, reentry_after_s=60.0, reentry_most=2),
)
RAISING = {
    EventKind.BEGIN,
    EventKind.PASS,
    EventKind.PROMOTE,
    EventKind.RESUME,
    EventKind.CALM,
}


def event(kind: EventKind, actor: str = "ann", at_s: float = 100.0, record: str = "r1") -> Event:
    return Event(kind, at_s, "because", actor if kind in COMMANDS else "quantgate", record)


def after(plan: Rollout, *kinds: EventKind | tuple[EventKind, str]) -> Stepped:
    """The last of several steps from the start; each at its own second."""
    standing = begin_standing(plan, "b", "r1", 0.0)
    stepped = Stepped(standing)
    for second, item in enumerate(kinds, start=1):
        kind, actor = item if isinstance(item, tuple) else (item, "ann")
        stepped = step(stepped.standing, event(kind, actor, 100.0 * second), plan)
    return stepped


def lived(history: tuple[Rollout, list[Event]]) -> Standing:
    """Where a bucket stands after all that."""
    plan, happened = history
    standing = begin_standing(plan, "b", "r1", 0.0)
    for one in happened:
        standing = step(standing, one, plan).standing
    return standing


events = st.builds(
    event,
    st.sampled_from(list(EventKind)),
    st.sampled_from(["ann", "bob", "eve"]),
    st.floats(0, 1e6),
    st.sampled_from(["r1", "r2"]),
)
histories = st.tuples(st.sampled_from(PLANS), st.lists(events, max_size=25))


@given(histories)
def test_nothing_acts_before_it_is_stored(history: tuple[Rollout, list[Event]]) -> None:
    """Where there are effects, the first stores the new standing over exactly the old one; the second is its record."""
    plan, happened = history
    standing = begin_standing(plan, "b", "r1", 0.0)
    for one in happened:
        stepped = step(standing, one, plan)
        if stepped.effects:
            stored, audit = stepped.effects[0], stepped.effects[1]
            assert isinstance(stored, Persist)
            assert stored.standing == stepped.standing
            assert stored.expected == standing.version == stepped.standing.version - 1
            assert isinstance(audit, Audit)
            assert audit.reason == one.reason
            assert audit.actor == one.actor
            assert (audit.before, audit.after) == (standing.state, stepped.standing.state)
        else:
            assert stepped.standing == standing
            assert stepped.why
        standing = stepped.standing


@given(histories)
def test_the_share_follows_from_the_state_alone_and_every_change_of_it_is_told_to_workers(
    history: tuple[Rollout, list[Event]],
) -> None:
    """What workers are told is what is stored, and a share never moves silently."""
    plan, happened = history
    standing = begin_standing(plan, "b", "r1", 0.0)
    for one in happened:
        stepped = step(standing, one, plan)
        new = stepped.standing
        assert new.share_bp == share_of_standing(plan, new)
        told = [effect for effect in stepped.effects if isinstance(effect, SetShare)]
        if new.share_bp != standing.share_bp:
            assert [effect.share_bp for effect in told] == [new.share_bp]
        if new.share_bp > max(standing.share_bp, 0):
            assert one.kind in RAISING
        standing = new


@given(histories)
def test_another_gateway_sees_the_same_stages_begin(history: tuple[Rollout, list[Event]]) -> None:
    """From the standings alone: step by step exactly, and over several steps at once nothing that matters is missed."""
    plan, happened = history
    standing = first = begin_standing(plan, "b", "r1", 0.0)
    since_first: list[StartStage] = []
    for second, one in enumerate(happened, start=1):
        moment = msgspec.structs.replace(one, at_s=float(second))
        stepped = step(standing, moment, plan)
        new = stepped.standing
        started = next((effect for effect in stepped.effects if isinstance(effect, StartStage)), None)
        assert stage_begun(standing, new, plan) == started
        since_first = [*since_first, started] if started is not None else since_first
        seen = stage_begun(first, new, plan)
        if new.watched and since_first:
            assert seen is not None
            assert seen.new_pool == any(effect.new_pool for effect in since_first)
        else:
            assert seen is None
        standing = new
    assert stage_begun(None, standing, plan) is None or standing.watched


@given(histories)
def test_a_rollback_is_reachable_from_every_state_and_latches(history: tuple[Rollout, list[Event]]) -> None:
    """A failed verdict takes the pool out whatever holds, pauses or freezes it (B121), and stays (B119)."""
    plan, happened = history
    standing = begin_standing(plan, "b", "r1", 0.0)
    for one in happened:
        failed = step(standing, event(EventKind.FAIL), plan).standing
        assert failed.state is State.ROLLED_BACK
        assert failed.share_bp == -1
        by_person = step(standing, event(EventKind.ROLLBACK), plan).standing
        assert by_person.state is State.ROLLED_BACK
        new = step(standing, one, plan).standing
        if standing.state is State.ROLLED_BACK and new.state is not State.ROLLED_BACK:
            assert one.kind in (EventKind.RESET, EventKind.REENTER)
            assert (new.state, new.share_bp, new.stage) == (State.PENDING, 0, 0)
        standing = new


@given(histories)
def test_each_new_entry_of_the_same_deployment_counts_and_another_one_starts_clean(
    history: tuple[Rollout, list[Event]],
) -> None:
    """Entries only grow while the record stays, because each is a new ticket for promotion."""
    plan, happened = history
    standing = begin_standing(plan, "b", "r1", 0.0)
    for one in happened:
        new = step(standing, one, plan).standing
        if new.record == standing.record:
            assert new.entries >= standing.entries
        else:
            assert new.entries == 0 or one.kind is EventKind.BEGIN
        standing = new


def test_a_good_pool_goes_through_all_stages_with_exactly_their_shares() -> None:
    """shadow → 5 → 25 → 100 % → promoted, one stage start each."""
    plan = make_plan()
    stepped = after(plan, EventKind.BEGIN)
    seen = [(stepped.standing.state, stepped.standing.share_bp)]
    standing = stepped.standing
    for second in range(4):
        stepped = step(standing, event(EventKind.PASS, at_s=1_000.0 + second), plan)
        standing = stepped.standing
        seen.append((standing.state, standing.share_bp))
    assert seen == [
        (State.SHADOWING, 0),
        (State.STEPPING, 500),
        (State.STEPPING, 2_500),
        (State.STEPPING, 10_000),
        (State.PROMOTED, 10_000),
    ]


def test_a_stage_that_needs_two_people_waits_for_two_different_ones() -> None:
    """The same person twice is one; with two it advances at the next verdict that still passes."""
    plan = make_plan(approvals=2)
    held = after(plan, EventKind.BEGIN, EventKind.PASS)
    assert (held.standing.state, held.standing.cause) == (State.HOLDING, Cause.APPROVAL)
    assert held.effects[-1] == Notify(Notice.APPROVAL_NEEDED, held.standing, State.SHADOWING)
    twice = after(
        plan, EventKind.BEGIN, EventKind.PASS, (EventKind.APPROVE, "ann"), (EventKind.APPROVE, "ann"), EventKind.PASS
    )
    assert twice.standing.state is State.HOLDING
    both = after(
        plan, EventKind.BEGIN, EventKind.PASS, (EventKind.APPROVE, "ann"), (EventKind.APPROVE, "bob"), EventKind.PASS
    )
    assert (both.standing.state, both.standing.stage, both.standing.votes) == (State.STEPPING, 1, ())


def test_a_person_who_promotes_past_the_evidence_needs_as_many_others() -> None:
    """Promotion by command takes the number of people that the policy asks for."""
    plan = make_plan(approvals=2)
    one = after(plan, EventKind.BEGIN, (EventKind.PROMOTE, "ann"))
    assert one.standing.state is State.SHADOWING
    two = after(plan, EventKind.BEGIN, (EventKind.PROMOTE, "ann"), (EventKind.PROMOTE, "bob"))
    assert two.standing.state is State.STEPPING
    assert after(make_plan(), EventKind.BEGIN, (EventKind.PROMOTE, "ann")).standing.state is State.STEPPING


def test_holds_keep_the_share_and_pauses_take_it() -> None:
    """A hold by a person does not advance on evidence; a pause ends at its own stage, begun anew."""
    plan = make_plan()
    live = [EventKind.BEGIN, EventKind.PASS]
    held = after(plan, *live, EventKind.HOLD, EventKind.PASS).standing
    assert (held.state, held.cause, held.share_bp) == (State.HOLDING, Cause.PERSON, 500)
    assert after(plan, *live, EventKind.PAUSE).standing.share_bp == 0
    resumed = after(plan, *live, EventKind.PAUSE, EventKind.RESUME)
    assert (resumed.standing.state, resumed.standing.share_bp) == (State.STEPPING, 500)
    assert StartStage(False) in resumed.effects


def test_a_stage_that_ran_out_of_time_goes_on_once_the_evidence_is_there() -> None:
    """Held for time, it advances by itself later; with approvals it asks for them first."""
    late = [EventKind.BEGIN, EventKind.TIMEOUT, EventKind.PASS]
    assert after(make_plan(), *late).standing.state is State.STEPPING
    asked = after(make_plan(approvals=1), *late).standing
    assert (asked.state, asked.cause) == (State.HOLDING, Cause.APPROVAL)


def test_an_incident_holds_and_ends_by_calm_but_not_over_a_persons_hold() -> None:
    """The platform's incident is no verdict on the pool."""
    plan = make_plan()
    live = [EventKind.BEGIN, EventKind.PASS]
    held = after(plan, *live, EventKind.INCIDENT)
    assert (held.standing.state, held.standing.cause, held.standing.share_bp) == (State.HOLDING, Cause.INCIDENT, 500)
    assert after(plan, *live, EventKind.INCIDENT, EventKind.CALM).standing.state is State.STEPPING
    person = after(plan, *live, EventKind.HOLD, EventKind.INCIDENT, EventKind.CALM).standing
    assert (person.state, person.cause) == (State.HOLDING, Cause.PERSON)


def test_the_brake_freezes_where_it_is_and_lets_go_to_the_same_place() -> None:
    """Frozen keeps its share and does not advance."""
    plan = make_plan()
    live = [EventKind.BEGIN, EventKind.PASS]
    frozen = after(plan, *live, EventKind.BRAKE, EventKind.PASS).standing
    assert (frozen.state, frozen.share_bp) == (State.FROZEN, 500)
    back = after(plan, *live, EventKind.BRAKE, EventKind.CALM).standing
    assert (back.state, back.share_bp, back.stage) == (State.STEPPING, 500, 1)


def test_re_entry_happens_as_often_as_the_policy_says_and_a_reset_by_a_person_any_time() -> None:
    """Each counts as an entry of the same record."""
    plan = make_plan(reentry_after_s=60.0, reentry_most=1)
    once = after(plan, EventKind.BEGIN, EventKind.FAIL, EventKind.REENTER).standing
    assert (once.state, once.entries, once.automatic) == (State.PENDING, 1, 1)
    twice = after(plan, EventKind.BEGIN, EventKind.FAIL, EventKind.REENTER, EventKind.FAIL, EventKind.REENTER).standing
    assert twice.state is State.ROLLED_BACK
    assert after(make_plan(), EventKind.FAIL, EventKind.REENTER).standing.state is State.ROLLED_BACK
    person = after(make_plan(), EventKind.BEGIN, EventKind.FAIL, EventKind.RESET).standing
    assert (person.state, person.entries) == (State.PENDING, 1)


def test_another_deployment_record_starts_anew_but_does_not_lift_a_rollback() -> None:
    """What was won was the old pool's; what was latched stays until somebody or the rule says so."""
    plan = make_plan()
    promoted = after(plan, EventKind.BEGIN, *[EventKind.PASS] * 4).standing
    changed = step(promoted, event(EventKind.CHANGED, record="r2"), plan).standing
    assert (changed.state, changed.share_bp, changed.record) == (State.PENDING, 0, "r2")
    assert step(promoted, event(EventKind.CHANGED, record="r1"), plan).effects == ()
    out = after(plan, EventKind.BEGIN, EventKind.FAIL, EventKind.RESET, EventKind.FAIL).standing
    noted = step(out, event(EventKind.CHANGED, record="r2"), plan).standing
    assert (noted.state, noted.record, noted.entries) == (State.ROLLED_BACK, "r2", 0)


def test_changed_stages_keep_the_place_without_a_larger_share() -> None:
    """5 % of 5/25/100 becomes 4 % of 1/4/50; shadowing stays shadowing; promoted takes the last stage."""
    plan = make_plan()
    shares = (("shadow", 500), ("weight", 100), ("weight", 400), ("weight", 5_000))
    other = msgspec.structs.replace(plan, stages=tuple(Stage(kind, bp, 1.0, 1, 1, 9.0) for kind, bp in shares))
    live = after(plan, EventKind.BEGIN, EventKind.PASS).standing
    assert step(live, event(EventKind.RELOADED), other).standing.share_bp == 400
    shadow = after(plan, EventKind.BEGIN).standing
    moved = step(shadow, event(EventKind.RELOADED), other).standing
    assert (moved.state, moved.stage, moved.share_bp) == (State.SHADOWING, 0, 0)
    promoted = after(plan, EventKind.BEGIN, *[EventKind.PASS] * 4).standing
    assert step(promoted, event(EventKind.RELOADED), other).standing.share_bp == 5_000


def staged(plan: Rollout, *shares: tuple[str, int]) -> Rollout:
    """The same rollout with other stages."""
    return msgspec.structs.replace(plan, stages=tuple(Stage(kind, bp, 1.0, 1, 1, 9.0) for kind, bp in shares))


OTHER_STAGES = (
    (("weight", 5_000), ("weight", 10_000)),
    (("shadow", 500), ("weight", 1_000)),
    (("weight", 100), ("weight", 400), ("shadow", 100), ("weight", 3_000)),
)


@given(histories, st.sampled_from(OTHER_STAGES), st.lists(events, min_size=1, max_size=4))
def test_before_it_is_placed_in_changed_stages_nothing_raises_a_share(
    history: tuple[Rollout, list[Event]], stages: tuple[tuple[str, int], ...], then: list[Event]
) -> None:
    """A person's command, a trip or another gateway may come between the reload and its first turn."""
    standing = lived(history)
    other = staged(history[0], *stages)
    for one in then:
        before, standing = standing, step(standing, one, other).standing
        placed = is_placed(other, before) or one.kind is EventKind.RELOADED or before.below is State.PENDING
        assert placed or standing.share_bp <= before.share_bp


def test_a_command_between_a_reload_and_its_turn_is_refused_unless_it_stops() -> None:
    """At 5 % of 5/25/100, and now of 50/100: a promotion would have led to 100 %."""
    plan = make_plan()
    live = after(plan, EventKind.BEGIN, EventKind.PASS).standing
    other = staged(plan, ("weight", 5_000), ("weight", 10_000))
    assert "other stages" in step(live, event(EventKind.PROMOTE), other).refusal
    held = step(live, event(EventKind.HOLD), other).standing
    assert (held.state, held.share_bp) == (State.HOLDING, 500)
    assert "other stages" in step(held, event(EventKind.RESUME), other).refusal
    assert step(held, event(EventKind.RELOADED), other).standing.share_bp == 0
    assert step(live, event(EventKind.FAIL), other).standing.state is State.ROLLED_BACK


def test_a_yes_to_another_step_is_none() -> None:
    """Approved from 5 % to 25 %, and the stages became 5/100: nobody has agreed to all of the traffic."""
    plan = make_plan(approvals=1)
    yes = (EventKind.APPROVE, "ann")
    live = after(plan, EventKind.BEGIN, yes, EventKind.PASS, yes).standing
    assert (live.share_bp, live.voters("approve")) == (500, {"ann"})
    other = staged(plan, ("weight", 500), ("weight", 10_000))
    placed = step(live, event(EventKind.RELOADED), other).standing
    assert (placed.share_bp, placed.votes) == (500, ())
    assert step(placed, event(EventKind.PASS), other).standing.cause is Cause.APPROVAL
    same = step(live, event(EventKind.RELOADED), plan)
    assert same.standing.votes == live.votes


def test_what_a_pause_took_away_bounds_what_a_resume_gives_back() -> None:
    """Paused at 5 %; the stages became 4/50: it goes on at 4 %, and not at the share of its old stage's number."""
    plan = make_plan()
    paused = after(plan, EventKind.BEGIN, EventKind.PASS, EventKind.PAUSE).standing
    assert (paused.share_bp, paused.paused_bp) == (0, 500)
    other = staged(plan, ("weight", 400), ("weight", 5_000))
    placed = step(paused, event(EventKind.RELOADED), other).standing
    assert (placed.state, placed.stage, placed.share_bp) == (State.PAUSED, 0, 0)
    resumed = step(placed, event(EventKind.RESUME), other).standing
    assert (resumed.state, resumed.share_bp, resumed.paused_bp) == (State.STEPPING, 400, 0)


def test_a_standing_that_an_earlier_release_stored_is_placed_once_it_moves() -> None:
    """It does not say what its stage counts in; a reload of the same stages has nothing to record."""
    plan = make_plan()
    old = msgspec.structs.replace(after(plan, EventKind.BEGIN, EventKind.PASS).standing, stages="")
    assert step(old, event(EventKind.RELOADED), plan).effects == ()
    assert step(old, event(EventKind.PASS), plan).standing.stages == "shadow:500 weight:500 weight:2500 weight:10000"


@pytest.mark.parametrize("events", [(), (EventKind.PASS,), (EventKind.PASS, EventKind.PASS, EventKind.PASS)])
def test_what_an_earlier_release_stored_of_other_stages_raises_nothing_before_it_is_placed(
    events: tuple[EventKind, ...],
) -> None:
    """Such a gateway may still write beside this one, and has other stages: its number means nothing here."""
    plan = make_plan()
    old = msgspec.structs.replace(after(plan, EventKind.BEGIN, *events).standing, stages="")
    for stages in OTHER_STAGES:
        other = staged(plan, *stages)
        for kind in (EventKind.PASS, EventKind.PROMOTE):
            stepped = step(old, event(kind), other)
            same = old.stage < len(stages) and stages[old.stage] == (plan.stages[old.stage].kind, old.share_bp or 500)
            assert same or stepped.effects == ()
        placed = step(old, event(EventKind.RELOADED), other)
        assert is_placed(other, placed.standing)


@given(histories, st.sampled_from(OTHER_STAGES))
def test_changed_stages_never_raise_a_share(
    history: tuple[Rollout, list[Event]], stages: tuple[tuple[str, int], ...]
) -> None:
    """Whatever happened before, and also once what interrupted the stage is over: larger shares take a beginning."""
    standing = lived(history)
    other = staged(history[0], *stages)
    stepped = step(standing, event(EventKind.RELOADED), other)
    new = stepped.standing
    assert new.share_bp <= max(standing.share_bp, 0)
    assert new.share_bp == share_of_standing(other, new) or not stepped.effects
    assert not any(isinstance(effect, StartStage) for effect in stepped.effects)
    if standing.live:
        back = step(new, event(EventKind.CALM), other).standing
        assert back.share_bp <= standing.share_bp


def test_where_no_stage_fits_the_rollout_begins_anew() -> None:
    """The first stage with its own time, lump and approvals; until then the baseline has the bucket."""
    plan = make_plan(approvals=1)
    yes = (EventKind.APPROVE, "ann")
    other = staged(plan, ("weight", 5_000), ("weight", 10_000))
    for happened in ([EventKind.BEGIN], [EventKind.BEGIN, yes, EventKind.PASS, yes]):
        before = after(plan, *happened).standing
        stepped = step(before, event(EventKind.RELOADED, at_s=900.0), other)
        new = stepped.standing
        assert (new.state, new.below, new.stage, new.share_bp, new.votes) == (State.PENDING, State.PENDING, 0, 0, ())
        assert new.entries == before.entries + 1
        assert SetShare(new.identity, new.bucket, 0) in stepped.effects
        begun = step(new, event(EventKind.BEGIN, at_s=901.0), other)
        assert (begun.standing.share_bp, begun.standing.stage_since_s) == (5_000, 901.0)
        assert StartStage(True, first_live=True) in begun.effects
        assert step(begun.standing, event(EventKind.PASS), other).standing.cause is Cause.APPROVAL


def test_where_no_stage_fits_what_people_and_incidents_hold_stays_held_without_a_share() -> None:
    """Let go, it begins anew; what only waited for evidence or approval has nothing left to wait for."""
    plan = make_plan(approvals=1)
    other = staged(plan, ("weight", 5_000), ("weight", 10_000))
    live = [EventKind.BEGIN, (EventKind.APPROVE, "ann"), EventKind.PASS]
    for interrupted in (EventKind.HOLD, EventKind.INCIDENT, EventKind.BRAKE):
        held = after(plan, *live, interrupted).standing
        new = step(held, event(EventKind.RELOADED), other).standing
        assert (new.state, new.below, new.share_bp) == (held.state, State.PENDING, 0)
        assert step(new, event(EventKind.PASS), other).standing.share_bp == 0
        ended = step(new, event(EventKind.RESUME), other).standing
        assert (ended.state, ended.share_bp) == (State.PENDING, 0)
    for waiting in (EventKind.PASS, EventKind.TIMEOUT):
        held = after(plan, *live, waiting).standing
        assert held.state is State.HOLDING
        assert step(held, event(EventKind.RELOADED), other).standing.state is State.PENDING


def test_promoted_at_a_share_that_is_not_the_last_any_more_goes_on_in_the_stage_of_that_share() -> None:
    """50 % was all; with 100 % behind it, it has to be passed towards that."""
    plan = staged(make_plan(), ("weight", 500), ("weight", 5_000))
    promoted = after(plan, EventKind.BEGIN, EventKind.PASS, EventKind.PASS).standing
    longer = staged(plan, ("weight", 500), ("weight", 5_000), ("weight", 10_000))
    new = step(promoted, event(EventKind.RELOADED), longer).standing
    assert (new.state, new.below, new.stage, new.share_bp) == (State.STEPPING, State.STEPPING, 1, 5_000)


def test_commands_that_make_no_sense_are_refused_with_the_way_out() -> None:
    """A person who asks for the impossible is told what to do instead."""
    plan = make_plan()
    out = after(plan, EventKind.FAIL).standing
    assert "reset" in step(out, event(EventKind.RESUME), plan).refusal
    waiting = begin_standing(plan, "b", "r1", 0.0)
    assert "begins by itself" in step(waiting, event(EventKind.PROMOTE), plan).refusal
    assert isinstance(waiting, Standing)
