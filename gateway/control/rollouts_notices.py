"""A transition told: one line of the log, and the messages for people.

Owns the words and which of them a transition calls for. Values in, values out; the service sends them.
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson
import structlog

from gateway.control.rollouts_values import Proposal
from gateway.control.webhooks import Message
from gateway.core.rollout import Event, EventKind, Notify, Standing, State

_ENDS = {State.ROLLED_BACK: "rollback", State.HOLDING: "hold", State.FROZEN: "incident", State.PAUSED: "hold"}

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
    if before.state in _ENDS and standing.state is not before.state:
        yield _message(_ENDS[before.state], standing, event, resolved=True)
    for effect in proposal.stepped.effects:
        if isinstance(effect, Notify):
            headroom = str(orjson.loads(proposal.evidence).get("headroom", ""))
            yield _message(effect.notice.value, standing, event, headroom=headroom)


def brake_message(done: Sequence[Proposal]) -> Message | None:
    """Once for all buckets that the brake froze: nobody is helped by fifty pages."""
    frozen = [proposal for proposal in done if proposal.event.kind is EventKind.BRAKE]
    if not frozen:
        return None
    event = frozen[0].event
    words = f"The brake is on, {len(frozen)} buckets are frozen: {event.reason}"
    return Message("incident", event.at_s, words, {"scope": "all rollouts"})


def _message(notice: str, standing: Standing, event: Event, *, resolved: bool = False, headroom: str = "") -> Message:
    labels = {"rollout": standing.rollout, "bucket": standing.bucket, "pool": standing.candidate}
    share = "none" if standing.share_bp <= 0 else f"{standing.share_bp / 100:g} %"
    words = f"{standing.candidate} in {standing.bucket} is {standing.state.value} (share {share}): {event.reason}"
    details = {"actor": event.actor, "stage": standing.stage, "baseline": standing.baseline, "headroom": headroom}
    return Message(notice, event.at_s, words, labels, details, resolved)
