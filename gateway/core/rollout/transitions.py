"""One step over the table: from a standing and an event to a new standing and the effects, as values.

Owns what a move writes into the standing (stage, share, votes, record, entries) and the order of effects. No state
changes without a reason on record, no share without being stored first. Called by the engine; touches nothing.
"""

from collections.abc import Callable, Mapping

import msgspec

from gateway.core.rollout.effects import Audit, Effect, Notify, Persist, SetShare, StartStage
from gateway.core.rollout.standing import (
    NO_SHARE_BP,
    Standing,
    Vote,
    is_last,
    is_placed,
    share_of_standing,
    stage_state,
    stages_of,
)
from gateway.core.rollout.states import RAISING, Cause, Event, EventKind, State
from gateway.core.rollout.table import TABLE, Move, To, When
from gateway.model.proving import Rollout

_OTHER_STAGES = "its stage is one of other stages than the policy's here; give all gateways the same policy, try again"


class Stepped(msgspec.Struct, frozen=True):
    """``standing`` after the event; no effects = nothing changed, and ``why`` says why. ``refusal`` is for people."""

    standing: Standing
    effects: tuple[Effect, ...] = ()
    why: str = ""
    refusal: str = ""


def begin_standing(plan: Rollout, bucket: str, record: str, at_s: float, slices: tuple[str, ...] = ()) -> Standing:
    """A bucket that is seen for the first time."""
    return Standing(
        plan.name,
        plan.identity,
        bucket,
        plan.candidate,
        plan.baseline,
        reason="seen for the first time",
        since_s=at_s,
        stage_since_s=at_s,
        record=record,
        slices=slices,
    )


def step(standing: Standing, event: Event, plan: Rollout) -> Stepped:
    """What ``event`` does to ``standing`` under ``plan``."""
    if event.kind in RAISING and not is_placed(plan, standing):
        return Stepped(standing, why=_OTHER_STAGES, refusal=_OTHER_STAGES)
    if event.kind is EventKind.RELOADED and standing.stages and is_placed(plan, standing):
        return Stepped(standing, why="its stages are the same")
    move = _move(standing, event, plan)
    if move.to is To.STAY:
        return Stepped(standing, why=move.why or move.refusal, refusal=move.refusal)
    after = _after(standing, event, plan, move)
    if move.to is To.NOTE and _same(standing, after):
        already = "that is on record already"
        return Stepped(standing, why=already, refusal=already if event.kind is not EventKind.RELOADED else "")
    after = msgspec.structs.replace(after, version=standing.version + 1)
    return Stepped(after, _effects(standing, after, event, plan, move), event.reason)


def _same(before: Standing, after: Standing) -> bool:
    """Whether nothing is different, but that an earlier release did not note the stages."""
    return after == (before if before.stages else msgspec.structs.replace(before, stages=after.stages))


def _move(standing: Standing, event: Event, plan: Rollout) -> Move:
    return next(move for move in TABLE[standing.state][event.kind] if _HOLDS[move.when](standing, event, plan))


def _after(standing: Standing, event: Event, plan: Rollout, move: Move) -> Standing:
    after = _moved(standing, event, plan, move)
    # What does not move on keeps its share, whatever the policy's stages became meanwhile: RELOADED fits it to them.
    if event.kind is not EventKind.RELOADED:
        if move.to in (To.NOTE, To.HOLDING, To.FROZEN):
            return after
        if move.to is To.PAUSED:
            return msgspec.structs.replace(after, share_bp=NO_SHARE_BP, paused_bp=max(standing.share_bp, NO_SHARE_BP))
    paused_bp = after.paused_bp if after.state is State.PAUSED else NO_SHARE_BP
    return msgspec.structs.replace(
        after, share_bp=share_of_standing(plan, after), stages=stages_of(plan), paused_bp=paused_bp
    )


def _moved(standing: Standing, event: Event, plan: Rollout, move: Move) -> Standing:
    if move.to is To.NOTE:
        return _noted(standing, event, plan)
    told = msgspec.structs.replace(
        standing, cause=move.cause, reason=event.reason, actor=event.actor, since_s=event.at_s
    )
    replace = msgspec.structs.replace
    match move.to:
        case To.PENDING:
            return _anew(told, event)
        case To.STAGE:
            state = stage_state(plan, 0)
            return replace(
                told, state=state, below=state, stage=0, stage_since_s=event.at_s, votes=(), record=event.record
            )
        case To.NEXT:
            return _next(told, event, plan)
        case To.BACK:
            begun = event.at_s if standing.state is State.PAUSED else standing.stage_since_s
            return replace(told, state=standing.below, stage_since_s=begun)
        case To.ROLLED_BACK:
            return replace(told, state=State.ROLLED_BACK, below=State.PENDING, votes=())
        case _:
            return replace(told, state=State(move.to.value))


def _next(standing: Standing, event: Event, plan: Rollout) -> Standing:
    if is_last(plan, standing.stage):
        return msgspec.structs.replace(standing, state=State.PROMOTED, below=State.PROMOTED, votes=())
    stage = standing.stage + 1
    state = stage_state(plan, stage)
    return msgspec.structs.replace(standing, state=state, below=state, stage=stage, stage_since_s=event.at_s, votes=())


def _anew(standing: Standing, event: Event) -> Standing:
    """Back to the start: another pool, a person's reset, the re-entry rule, or stages none of which fits."""
    other = event.kind is EventKind.CHANGED
    automatic = standing.automatic if event.kind is EventKind.RELOADED else 0
    if event.kind is EventKind.REENTER:
        automatic = standing.automatic + 1
    return msgspec.structs.replace(
        standing,
        state=State.PENDING,
        below=State.PENDING,
        stage=0,
        votes=(),
        stage_since_s=event.at_s,
        record=event.record if other else standing.record,
        entries=0 if other else standing.entries + 1,
        automatic=automatic,
    )


def _noted(standing: Standing, event: Event, plan: Rollout) -> Standing:
    replace = msgspec.structs.replace
    if event.kind in (EventKind.APPROVE, EventKind.PROMOTE):
        if event.actor in standing.voters(event.kind.value):
            return standing
        return replace(standing, votes=(*standing.votes, Vote(event.actor, event.kind.value, event.at_s)))
    if event.kind is EventKind.CHANGED:
        fresh = replace(standing, record=event.record, entries=0, automatic=0)
        # Paused: what was interrupted was another pool's; it begins anew once resumed.
        return replace(fresh, below=State.PENDING, stage=0, votes=()) if standing.state is State.PAUSED else fresh
    return _restaged(standing, plan)


def _restaged(standing: Standing, plan: Rollout) -> Standing:
    """The same place in changed stages. Held, frozen or paused where there is none: it begins anew once let go.

    People said yes to a step between stages that are others now: they are asked again.
    """
    replace = msgspec.structs.replace
    place = _place(standing, plan)
    if place is None:
        return replace(standing, below=State.PENDING, stage=0, votes=(), entries=standing.entries + 1)
    below = standing.below
    if below is not State.PENDING and not (below is State.PROMOTED and is_last(plan, place)):
        below = stage_state(plan, place)
    runs = standing.state in (State.SHADOWING, State.STEPPING, State.PROMOTED)
    votes = standing.votes if not standing.stages else ()
    return replace(standing, stage=place, below=below, votes=votes, state=below if runs else standing.state)


def _place(standing: Standing, plan: Rollout) -> int | None:
    """The stage to go on in: never a larger share than before, and the same kind of traffic. None = no stage fits.

    The evidence and the time so far were won at that share: they are not a way to a larger one.
    """
    last = len(plan.stages) - 1
    if standing.below is State.PENDING:
        return 0
    had = standing.share_bp if standing.live else standing.paused_bp or None
    if standing.below is State.PROMOTED and (had is None or plan.stages[last].share_bp <= had):
        return last
    kind = "shadow" if standing.below is State.SHADOWING else "weight"
    fitting = [
        index
        for index, stage in enumerate(plan.stages)
        if stage.kind == kind and (stage.share_bp <= had if had is not None else index <= standing.stage)
    ]
    return fitting[-1] if fitting else None


def _effects(before: Standing, after: Standing, event: Event, plan: Rollout, move: Move) -> tuple[Effect, ...]:
    effects: list[Effect] = [
        Persist(after, before.version),
        Audit(
            after.identity,
            after.bucket,
            after.version,
            event.at_s,
            event.kind,
            before.state,
            after.state,
            after.stage,
            after.share_bp,
            event.reason,
            event.actor,
        ),
    ]
    started = _stage_start(before, after, event, plan)
    if started is not None:
        effects.append(started)
    if move.to is not To.NOTE or after.share_bp != before.share_bp:
        effects.append(SetShare(after.identity, after.bucket, after.share_bp))
    if move.tell is not None:
        effects.append(Notify(move.tell, after, before.state))
    return tuple(effects)


def _stage_start(before: Standing, after: Standing, event: Event, plan: Rollout) -> StartStage | None:
    """A stage begins when its time begins: at the first one, at the next one, and after a pause."""
    if after.state not in (State.SHADOWING, State.STEPPING) or after.stage_since_s != event.at_s:
        return None
    if event.kind in (EventKind.RELOADED, EventKind.APPROVE):
        return None
    return StartStage(event.kind is EventKind.BEGIN, _first_live(before, after, plan))


def stage_begun(before: Standing | None, after: Standing, plan: Rollout) -> StartStage | None:
    """The same from two standings alone, between which another gateway may have made several steps."""
    if not after.watched or (before is not None and before.stage_since_s == after.stage_since_s and before.watched):
        return None
    new_pool = before is None or not before.watched or (before.record, before.entries) != (after.record, after.entries)
    return StartStage(new_pool, _first_live(before, after, plan))


def _first_live(before: Standing | None, after: Standing, plan: Rollout) -> bool:
    """Whether it is the first stage with traffic of clients, and not the same one again after a pause."""
    first = after.stage == 0 or plan.stages[after.stage - 1].kind == "shadow"
    return after.below is State.STEPPING and first and (before is None or before.state is not State.PAUSED)


# conditions


def _approved(standing: Standing, _: Event, plan: Rollout) -> bool:
    # The last stage's pass raises no share: there is nothing to agree to.
    return is_last(plan, standing.stage) or len(standing.voters("approve")) >= plan.approvals


def _promoted_by_enough(standing: Standing, event: Event, plan: Rollout) -> bool:
    return len(standing.voters("promote") | {event.actor}) >= max(1, plan.approvals)


_HOLDS: Mapping[When, Callable[[Standing, Event, Rollout], bool]] = {
    When.ALWAYS: lambda standing, event, plan: True,
    When.APPROVED: _approved,
    When.PROMOTED_BY_ENOUGH: _promoted_by_enough,
    When.AWAITS_APPROVAL: lambda standing, event, plan: (
        standing.cause is Cause.APPROVAL and _approved(standing, event, plan)
    ),
    When.OVERTIME: lambda standing, event, plan: standing.cause is Cause.TIME and _approved(standing, event, plan),
    When.NOT_APPROVED: lambda standing, event, plan: standing.cause is Cause.TIME,
    When.IN_INCIDENT: lambda standing, event, plan: standing.cause is Cause.INCIDENT,
    When.NOT_BY_PERSON: lambda standing, event, plan: standing.cause is not Cause.PERSON,
    When.UNDER_PROMOTED: lambda standing, event, plan: standing.below in (State.PROMOTED, State.PENDING),
    When.REENTRY_LEFT: lambda standing, event, plan: (
        plan.reentry_after_s is not None and standing.automatic < plan.reentry_most
    ),
    When.OTHER_RECORD: lambda standing, event, plan: event.record != standing.record,
    When.NO_STAGE_FITS: lambda standing, event, plan: _place(standing, plan) is None,
    When.NO_STAGE_AWAITED: lambda standing, event, plan: (
        standing.cause in (Cause.APPROVAL, Cause.TIME) and _place(standing, plan) is None
    ),
}
