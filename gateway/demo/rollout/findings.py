"""What the rollout came to: its phases with what each pool did in them, and whether the decisions held.

Three accounts again (``proof``): the application's, the gateway's access log, and the servers' own logs. A check fails
where an account says nothing. Pure. Called by ``chapter`` when all requests are over.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gateway.demo.access import Entry
from gateway.demo.client import right
from gateway.demo.proof import CLIENT, GATEWAY, SERVERS, Check, Evidence, accounted, placed, same_pool, tokens
from gateway.demo.rollout.notes import Way
from gateway.demo.rollout.standing import ROLLED_BACK, Bucket, Event
from gateway.demo.rollout.traffic import Decision, Sent


class Found(msgspec.Struct, frozen=True):
    """All there is to tell. ``buckets`` as they stand at the end; ``took_s``: the whole rollout."""

    candidate: str
    baseline: str
    buckets: Mapping[Way, Bucket]
    events: Mapping[Way, Sequence[Event]]
    decisions: Mapping[Way, Decision]
    sent: Sequence[Sent]
    evidence: Evidence
    took_s: float


class Phase(msgspec.Struct, frozen=True):
    """A bucket between two events. ``began`` None = before the rollout met it; ``ended`` None = at the end."""

    way: Way
    began: Event | None
    ended: Event | None
    requests: int
    by_candidate: int
    wrong_candidate: int
    wrong_baseline: int


def phases(found: Found) -> tuple[Phase, ...]:
    """Every phase of every way. A request belongs to the phase in which it arrived, by the gateway's clock."""
    arrived = {entry.request_id: entry.at.timestamp() for entry in found.evidence.entries}
    made: list[Phase] = []
    for way in Way:
        events = found.events.get(way, ())
        of_way = [sent for sent in found.sent if sent.request.way is way and sent.answer.request_id in arrived]
        for began, ended in zip((None, *events), (*events, None), strict=True):
            since = began.at if began is not None else 0.0
            until = ended.at if ended is not None else float("inf")
            inside = [sent for sent in of_way if since <= arrived[sent.answer.request_id] < until]
            mine = [sent for sent in inside if sent.answer.pool == found.candidate]
            theirs = [sent for sent in inside if sent.answer.pool != found.candidate]
            wrong = [sum(not sent.good for sent in arm) for arm in (mine, theirs)]
            made.append(Phase(way, began, ended, len(inside), len(mine), *wrong))
    return tuple(made)


def requests_until(found: Found, last: Event, way: Way) -> tuple[int, int]:
    """Requests of a way from its first event to this one: all, and those of the candidate."""
    before = [
        phase
        for phase in phases(found)
        if phase.way is way and phase.began is not None and phase.ended is not None and phase.ended.at <= last.at
    ]
    return sum(phase.requests for phase in before), sum(phase.by_candidate for phase in before)


def checks(found: Found) -> tuple[Check, ...]:
    """All checks, those on rollbacks at the end."""
    rolled_back = [way for way, decision in found.decisions.items() if decision.state == ROLLED_BACK]
    return (
        _answered(found.sent),
        accounted(found.evidence),
        same_pool(found.evidence),
        tokens(found.evidence),
        *(_stayed_out(found, way) for way in rolled_back),
    )


def _answered(sent: Sequence[Sent]) -> Check:
    """Every request was answered, and the gateway took the application's word on every answer."""
    answered = [one for one in sent if right(one.request.item, one.answer)]
    told = sum(one.told for one in answered)
    failed = [f"request {one.answer.number} got {one.answer.status} {one.answer.error}" for one in sent]
    failed = [text for one, text in zip(sent, failed, strict=True) if one not in answered]
    return Check(
        "No request failed over it, and every answer was judged",
        bool(sent) and not failed and told == len(sent),
        (
            (CLIENT, f"{len(answered)} of {len(sent)} answered; the gateway took {told} words on them"),
            *((CLIENT, text.rstrip()) for text in failed[:5]),
        ),
    )


def _stayed_out(found: Found, way: Way) -> Check:
    """After a rollback no request of the bucket reached the candidate, by any account."""
    last = found.decisions[way].number
    after = [sent for sent in found.sent if sent.request.way is way and sent.answer.number > last]
    numbers = {sent.answer.number for sent in after}
    told = Counter(sent.answer.pool for sent in after)
    tried = _attempts(found.evidence.entries, {sent.answer.request_id for sent in after})
    seen = Counter(
        account.pool
        for account in found.evidence.accounts
        for sighting in account.sightings
        if sighting.number in numbers
    )
    pools = [account.pool for account in found.evidence.accounts]
    out = not (told[found.candidate] or tried[found.candidate] or seen[found.candidate])
    whole = bool(after) and len(after) == sum(told.values()) == sum(seen.values()) and sum(tried.values()) >= len(after)
    return Check(
        f"After the rollback no request of {found.buckets[way].bucket} reached {found.candidate}",
        out and whole,
        (
            (CLIENT, f"{len(after)} sent since a second after the gateway told of it; answered: {placed(told, pools)}"),
            (GATEWAY, f"attempts: {placed(tried, pools)}"),
            (SERVERS, f"computed: {placed(seen, pools)}"),
        ),
    )


def _attempts(entries: Iterable[Entry], ids: set[str]) -> Counter[str]:
    """Attempts at each pool, failed ones included."""
    return Counter(attempt.pool for entry in entries if entry.request_id in ids for attempt in entry.attempts)
