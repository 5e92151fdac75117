"""A tenant's limits, and what answers say of them."""

import pytest

from gateway.dataplane.identity import Caller
from gateway.dataplane.quota import Quota, limited, reset_s, too_long
from gateway.model.table import Limits, Tenant


def quota(**limits: float) -> Quota:
    return Quota(Caller(Tenant("t", limits=Limits(**limits), slot=1)))  # type: ignore[arg-type]  # inflight is whole


def test_both_limits_are_told_with_what_is_left_and_when_they_begin_anew() -> None:
    """OpenAI's six lines, behind what was there before; nothing is left below zero."""
    told = quota(requests_per_minute=60, tokens_per_minute=1000.5).told(b"A: b\r\n", 1.2, 2000.0, 120)
    assert told == (
        b"A: b\r\n"
        b"x-ratelimit-limit-requests: 60\r\n"
        b"x-ratelimit-remaining-requests: 58\r\n"
        b"x-ratelimit-reset-requests: 120s\r\n"
        b"x-ratelimit-limit-tokens: 1000\r\n"
        b"x-ratelimit-remaining-tokens: 0\r\n"
        b"x-ratelimit-reset-tokens: 120s\r\n"
    )


def test_a_limit_that_does_not_exist_is_not_told() -> None:
    """One of the two, or neither where only requests in flight are limited."""
    assert b"requests" not in quota(tokens_per_minute=10).told(b"", 1, 1, 61)
    assert b"tokens" not in quota(requests_per_minute=10).told(b"", 1, 1, 61)
    only = quota(inflight=3)
    assert (only.told(b"x", 1, 1, 61), only.per_minute, only.inflight) == (b"x", False, 3)
    assert quota().inflight == -1


@pytest.mark.parametrize(("wall", "seconds"), [(0.0, 61), (0.5, 60), (59.0, 2), (59.9, 1), (60.0, 61)])
def test_the_reset_is_the_end_of_the_minute(wall: float, seconds: int) -> None:
    """Rounded up."""
    assert reset_s(wall) == seconds


def test_a_refusal_names_the_limit() -> None:
    """What is full, how much it is, and how long to wait."""
    error = limited("requests in flight", 1.5, 1)
    assert (error.status, error.code) == (429, "rate_limit_exceeded")
    assert "limit of 1.5 requests in flight" in error.message
    assert error.headers == (("Retry-After", "1"),)


def test_a_prompt_above_the_limit_is_not_told_to_wait() -> None:
    """It would be refused again, for ever."""
    error = too_long(7504, 6000.0)
    assert (error.status, error.code, error.headers) == (429, "rate_limit_exceeded", (("x-should-retry", "false"),))
    assert "about 7504 tokens" in error.message
