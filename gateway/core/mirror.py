"""Which requests are mirrored, and what of them: pure decisions on shadow traffic.

Decided before anything is known of the answer, by a stable hash of rule and conversation, so that a conversation is
mirrored whole or not at all and the estimate holds for what the rule says. Called by ``dataplane.shadow``, and by
``control.likelihood`` for its share of the pairs.
"""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b

from gateway.core.decide import MEMO_MOST, objections
from gateway.core.edit import overwrite
from gateway.model.enums import GENERATING, Api
from gateway.model.facts import Facts, Profile
from gateway.model.proving import Shadow
from gateway.model.table import Table

_WHOLE = 1 << 32

# What names a person or a session, bills somebody, or makes a runtime store something.
_PRIVATE = {
    "user": b"null",
    "metadata": b"null",
    "prompt_cache_key": b"null",
    "safety_identifier": b"null",
    "store": b"false",
}


class Event(StrEnum):
    """What can happen to a request that a shadow rule matches. Closed; the value is the metric label.

    eligible = mirrored + the reasons against it; mirrored = compared + unscored + what was lost on the way. ``failed``
    counts some of the compared once more.
    """

    ELIGIBLE = "eligible"
    MIRRORED = "mirrored"
    COMPARED = "compared"
    FAILED = "failed"  # of the compared: the candidate's leg gave no answer
    UNSCORED = "unscored"  # a leg was taken away midway, or the comparison broke: missing, never good
    # not mirrored
    OPTED_OUT = "opted_out"
    SERVER_STATE = "server_state"  # stored conversations and tools that act on the server
    NOT_BASELINE = "not_baseline"  # the baseline is not what serves this request
    NOT_PERMITTED = "not_permitted"  # the candidate may not get this request: adapter, context window, a constraint
    OTHER_RULE = "other_rule"  # mirrored under another rule
    PRESSURE = "pressure"  # clients need the room
    QUEUE_FULL = "queue_full"
    RATE = "rate"
    # mirrored, and of no use
    SHED = "shed"  # clients needed the room while legs waited
    CLIENT_GONE = "client_gone"  # nobody knows what the whole answer would have been
    SERVED_ELSEWHERE = "served_elsewhere"  # the baseline was not asked after all
    NOT_SERVED = "not_served"  # refused or shed: no pool was asked, or the client's own fault
    TOO_LONG = "too_long"  # the client's answer is over the capture's bound
    POLICY_CHANGED = "policy_changed"  # the rule went away while legs waited or ran
    STOPPING = "stopping"
    BUFFER_FULL = "buffer_full"
    FAULT = "fault"  # of the gateway's own


def sampled(rule: str, what: str, key: bytes, share: float) -> bool:
    """Whether ``key`` falls into ``share`` of a rule; ``what`` makes draws for different purposes independent."""
    if share >= 1.0:
        return True
    return _draw(rule, what, key) < share * _WHOLE


def chosen(rules: Sequence[Shadow], key: bytes) -> list[Shadow]:
    """The rules whose sample holds ``key``, the one to be mirrored under first.

    A request is mirrored once. Which rule comes first is drawn, so that a rule in front cannot starve the others.
    """
    found = [rule for rule in rules if sampled(rule.name, "sample", key, rule.sample)]
    if len(found) > 1:
        found.sort(key=lambda rule: _draw(rule.name, "first", key))
    return found


def _draw(rule: str, what: str, key: bytes) -> int:
    person = blake2b(f"{what}:{rule}".encode(), digest_size=16).digest()
    return int.from_bytes(blake2b(key, key=person, digest_size=4).digest(), "big")


def matching(rules: tuple[Shadow, ...], profile: Profile, api: Api) -> list[Shadow]:
    """The rules that speak of this request."""
    if api not in GENERATING:
        return []
    return [rule for rule in rules if rule.model == profile.model and rule.matches(profile)]


def keeps_out(facts: Facts, *, tenant_agrees: bool) -> Event | None:
    """Why a request must not be mirrored, whatever the rule says."""
    if not tenant_agrees:
        return Event.OPTED_OUT
    return Event.SERVER_STATE if facts.server_state else None


def permitted(table: Table, rule: Shadow, profile: Profile) -> bool:
    """Whether the candidate may get a copy of this request.

    Evidence about requests that could never be routed to the candidate is of no use, and a constraint may say where
    data must not go. So every constraint holds, but for those that wait for just this evidence (``unless_measured``).
    """
    key = ("shadow", rule.name, table.memo_key(profile))
    known = table.memo.get(key)
    if known is None:
        binding = tuple(
            constraint
            for constraint in table.constraints
            if constraint.unless_measured is None and constraint.matches(profile)
        )
        pool = table.pools[rule.candidate]
        known = next(objections(table.models.get(pool.model), pool, profile, binding), None) is None
        if len(table.memo) < MEMO_MOST:
            table.memo[key] = known
    return known is True


def share_of_worker(limit: int, worker: int, workers: int) -> int:
    """A worker's part of a limit of the whole host; the parts add up to it exactly, so some may be 0."""
    whole, rest = divmod(limit, workers)
    return whole + (worker < rest)


def shadow_body(body: bytes, api: Api) -> bytes:
    """The body without what names or bills somebody. A runtime stores an answer of the Responses API unless it is told
    not to, so it is told."""
    return overwrite(body, _PRIVATE, add=("store",) if api is Api.RESPONSES else ())
