"""A tenant's limits as each request asks for them, and the words about them that answers carry.

Made once per caller and generation: what never changes about the x-ratelimit-* lines is bytes already. Counting is
``board``'s; called by ``admission``.
"""

from typing import Final

from gateway.dataplane.board import FORGOTTEN_S
from gateway.dataplane.identity import Caller
from gateway.errors import ApiError

UNLIMITED: Final = float("inf")
_RESETS: Final = [b"%ds\r\n" % seconds for seconds in range(FORGOTTEN_S + 1)]


class Quota:
    """Limits a minute, infinite where there is none; ``inflight`` is -1 where there is none."""

    __slots__ = (
        *("caller", "inflight", "per_minute", "requests", "tokens"),
        *("_requests_told", "_tokens_told"),
    )

    def __init__(self, caller: Caller) -> None:
        limits = caller.tenant.limits
        self.caller = caller
        self.requests: float = UNLIMITED if limits.requests_per_minute is None else limits.requests_per_minute
        self.tokens: float = UNLIMITED if limits.tokens_per_minute is None else limits.tokens_per_minute
        self.inflight = -1 if limits.inflight is None else limits.inflight
        self.per_minute = limits.requests_per_minute is not None or limits.tokens_per_minute is not None
        self._requests_told = _told_of(b"requests", self.requests)
        self._tokens_told = _told_of(b"tokens", self.tokens)

    def told(self, before: bytes, requests: float, tokens: float, seconds: int) -> bytes:
        """Header lines, and behind them OpenAI's x-ratelimit-* lines; the reset is ``seconds`` from now."""
        reset = _RESETS[seconds]
        lines = before
        if self._requests_told:
            lines = b"%b%b%d\r\nx-ratelimit-reset-requests: %b" % (
                lines,
                self._requests_told,
                _left(self.requests, requests),
                reset,
            )
        if self._tokens_told:
            lines = b"%b%b%d\r\nx-ratelimit-reset-tokens: %b" % (
                lines,
                self._tokens_told,
                _left(self.tokens, tokens),
                reset,
            )
        return lines


def reset_s(wall: float) -> int:
    """Whole seconds until the minute is over, 1 to 61."""
    return max(1, int(60.0 - wall % 60.0) + 1)


def limited(what: str, limit: float, seconds: int) -> ApiError:
    """The refusal of a request over a limit, which ``seconds`` later has room for it."""
    message = f"This key's limit of {limit:g} {what} is reached. Try again in {seconds} s."
    return ApiError(429, "rate_limit_exceeded", message, headers=(("Retry-After", str(seconds)),))


def too_long(tokens: int, limit: float) -> ApiError:
    """The refusal of a request that is over the limit by itself: waiting does not help, and OpenAI's SDKs are told."""
    message = (
        f"This request's prompt has about {tokens} tokens, more than this key's {limit:g} a minute. Send less at once."
    )
    return ApiError(429, "rate_limit_exceeded", message, headers=(("x-should-retry", "false"),))


def _told_of(name: bytes, limit: float) -> bytes:
    """The lines of one limit up to the number that is left."""
    if limit == UNLIMITED:
        return b""
    return b"x-ratelimit-limit-%b: %d\r\nx-ratelimit-remaining-%b: " % (name, int(limit), name)


def _left(limit: float, used: float) -> int:
    left = int(limit - used)
    return left if left > 0 else 0
