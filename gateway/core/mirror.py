"""Which requests are mirrored, and what of them: pure decisions on shadow traffic.

Decided before anything is known of the answer, by a stable hash of rule and conversation, so that a conversation is
mirrored whole or not at all and the estimate holds for what the rule says. Called by ``dataplane.shadow``.
"""

from enum import StrEnum
from hashlib import blake2b

from gateway.core.edit import blank
from gateway.model.enums import GENERATING, Api
from gateway.model.facts import Facts, Profile
from gateway.model.proving import Shadow

_WHOLE = 1 << 32

# What names a person or a session, bills somebody, or makes a runtime store something.
_PRIVATE = ("user", "metadata", "prompt_cache_key", "safety_identifier", "store")

# Tools of the Responses API that act or look things up on the server by themselves.
_ACTING = (b'"web_search', b'"file_search"', b'"code_interpreter"', b'"computer', b'"mcp"', b'"image_generation"')


class Event(StrEnum):
    """What can happen to a request that a shadow rule matches. Closed; the value is the metric label."""

    ELIGIBLE = "eligible"
    MIRRORED = "mirrored"
    COMPARED = "compared"
    FAILED = "failed"  # the candidate's leg gave no answer
    OPTED_OUT = "opted_out"
    SERVER_STATE = "server_state"  # stored conversations and tools that act on the server
    NOT_BASELINE = "not_baseline"  # the baseline is not what serves this request
    PRESSURE = "pressure"  # the gateway is busy with clients
    QUEUE_FULL = "queue_full"
    RATE = "rate"
    CLIENT_GONE = "client_gone"  # nobody knows what the whole answer would have been
    SERVED_ELSEWHERE = "served_elsewhere"  # the baseline failed over
    NOT_SERVED = "not_served"  # refused or shed: no pool was asked, or the client's own fault
    TOO_LONG = "too_long"  # an answer over the capture's bound
    BUFFER_FULL = "buffer_full"


def sampled(rule: str, what: str, key: bytes, share: float) -> bool:
    """Whether ``key`` falls into ``share`` of a rule; ``what`` makes draws for different purposes independent."""
    if share >= 1.0:
        return True
    digest = blake2b(key, key=f"{what}:{rule}".encode()[:64], digest_size=4).digest()
    return int.from_bytes(digest, "big") < share * _WHOLE


def matching(rules: tuple[Shadow, ...], profile: Profile, api: Api) -> list[Shadow]:
    """The rules that speak of this request."""
    if api not in GENERATING:
        return []
    return [rule for rule in rules if rule.model == profile.model and rule.matches(profile)]


def keeps_out(facts: Facts, body: bytes, *, tenant_agrees: bool) -> Event | None:
    """Why a request must not be mirrored, whatever the rule says."""
    if not tenant_agrees:
        return Event.OPTED_OUT
    if facts.server_state or (facts.api is Api.RESPONSES and any(word in body for word in _ACTING)):
        return Event.SERVER_STATE
    return None


def shadow_body(body: bytes) -> bytes:
    """The body without what names or bills somebody."""
    return blank(body, _PRIVATE)
