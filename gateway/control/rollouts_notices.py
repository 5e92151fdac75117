"""A transition told: one line of the log, and the messages for people.

Owns the words and which of them a transition calls for. Values in, values out; the service sends them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson
import structlog

from gateway.control.rollouts_trips import BESIDE
from gateway.control.rollouts_values import Key, Proposal
from gateway.control.webhooks import Message
from gateway.core.rollout import Cause, Event, EventKind, Notice, Notify, Standing, State

# By what people know of a state that ends. The brake is told for all buckets together.
_TOLD = {State.ROLLED_BACK: Notice.ROLLBACK, State.HOLDING: Notice.HOLD, State.PAUSED: Notice.HOLD}
_HELD = {Cause.INCIDENT: Notice.INCIDENT, Cause.APPROVAL: Notice.APPROVAL_NEEDED}
_BRAKE = {"scope": "all rollouts"}

LEFT_TOLD_MOST = 20

_log = structlog.get_logger("control.rollouts")


def say(standing: Standing, before: Standing, event: Event) -> None:
    """The line of the log."""
    _log.info(
        "rollout_moved",
        rollout=standing.rollout,
        bucket=standing.bucket,
        pool=standing.candidate,
        before=before.state.value,
        state=standing.state.value,
        stage=standing.stage,
        share_bp=standing.share_bp,
        cause=event.kind.value,
        reason=event.reason,
        actor=event.actor,
    )


def say_left_behind(standings: Iterable[Standing]) -> None:
    """A policy came into force without the rollouts that took candidates out, so nothing keeps them out any longer."""
    found: dict[tuple[str, str], list[str]] = {}
    for standing in standings:
        if standing.state is State.ROLLED_BACK:
            found.setdefault((standing.rollout, standing.candidate), []).append(standing.bucket)
    for (rollout, pool), buckets in found.items():
        _log.warning(
            "rollback_left_behind",
            rollout=rollout,
            pool=pool,
            buckets=sorted(buckets)[:LEFT_TOLD_MOST],
            of=len(buckets),
            mend="the pool is served by its routes again, or begins a changed rollout anew; take it out of both, "
            "or put the rollout back as it was: name, pools and buckets",
        )


def messages_of(proposal: Proposal, before: Standing) -> Iterator[Message]:
    """What ended is told as resolved, then what began."""
    standing, event = proposal.stepped.standing, proposal.event
    known = _known_as(before)
    if known is not None and (standing.state is not before.state or _known_as(standing) is not known):
        yield _message(known.value, standing, event, resolved=True)
    for effect in proposal.stepped.effects:
        if isinstance(effect, Notify):
            headroom = str(orjson.loads(proposal.evidence).get("headroom", ""))
            yield _message(effect.notice.value, standing, event, headroom=headroom)


def _known_as(standing: Standing) -> Notice | None:
    """The notice that told people how the bucket stands, for the same one must end it."""
    if standing.state is State.HOLDING and not standing.reason.startswith(BESIDE):
        return _HELD.get(standing.cause, Notice.HOLD)
    return _TOLD.get(standing.state)


def brake_message(
    done: Sequence[Proposal], befores: Mapping[Key, Standing], standings: Iterable[Standing]
) -> Message | None:
    """Once for all buckets that the brake froze, and once when the last of ``standings`` is free: nobody is helped by
    fifty pages."""
    frozen = [proposal for proposal in done if proposal.event.kind is EventKind.BRAKE]
    if frozen:
        event = frozen[0].event
        words = f"The brake is on, {len(frozen)} buckets are frozen: {event.reason}"
        return Message("incident", event.at_s, words, _BRAKE)
    freed = [proposal for proposal in done if befores[proposal.key].state is State.FROZEN]
    if not freed or any(standing.state is State.FROZEN for standing in standings):
        return None
    event = freed[-1].event
    return Message("incident", event.at_s, f"No bucket is frozen any more: {event.reason}", _BRAKE, resolved=True)


def _message(notice: str, standing: Standing, event: Event, *, resolved: bool = False, headroom: str = "") -> Message:
    labels = {"rollout": standing.rollout, "bucket": standing.bucket, "pool": standing.candidate}
    share = "none" if standing.share_bp <= 0 else f"{standing.share_bp / 100:g} %"
    words = f"{standing.candidate} in {standing.bucket} is {standing.state.value} (share {share}): {event.reason}"
    details = {"actor": event.actor, "stage": standing.stage, "baseline": standing.baseline, "headroom": headroom}
    return Message(notice, event.at_s, words, labels, details, resolved)
