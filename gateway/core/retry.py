"""What a failed attempt means: whose fault, whether another endpoint may be tried, what the client is told.

One table, so that breaker, metrics, retry and answer can never disagree. ``parse_retry_after`` reads what pools send.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import orjson

from gateway.model.enums import Failure, Result

RETRY_AFTER_CAP_S = 300

_STATUS_OF_WORD: Final = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "BadRequestError": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "NotFoundError": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "overloaded_error": 503,
    "server_is_overloaded": 503,
    "service_unavailable_error": 503,
    "timeout_error": 504,
}


ERROR_MOST_BYTES: Final = 64 * 1024  # of an error's text that is read
# vLLM's log-probabilities may be numbers no more (a broken KV cache); TensorRT-LLM says 400 to every exception.
_OWN_FAULTS: Final = ("out of range float values are not json compliant", "cuda ", "[tensorrt-llm][error]")


class Meaning(NamedTuple):
    """``blame``: counts against the endpoint. ``again``: another endpoint may be tried. ``status`` for the client."""

    blame: bool
    again: bool
    result: Result
    status: int
    code: str


MEANINGS: dict[Failure, Meaning] = {
    Failure.CONNECT: Meaning(True, True, Result.UPSTREAM_ERROR, 502, "upstream_unreachable"),
    Failure.REUSED_CLOSED: Meaning(False, True, Result.UPSTREAM_ERROR, 502, "upstream_closed"),
    Failure.FIRST_BYTE_TIMEOUT: Meaning(True, True, Result.UPSTREAM_TIMEOUT, 504, "upstream_timeout"),
    Failure.IDLE_TIMEOUT: Meaning(True, True, Result.UPSTREAM_TIMEOUT, 504, "upstream_timeout"),
    Failure.TOTAL_TIMEOUT: Meaning(True, False, Result.UPSTREAM_TIMEOUT, 504, "upstream_timeout"),
    Failure.STATUS_429: Meaning(False, True, Result.UPSTREAM_ERROR, 429, "upstream_busy"),
    Failure.STATUS_4XX: Meaning(False, False, Result.CLIENT_ERROR, 400, "upstream_refused"),
    Failure.STATUS_5XX: Meaning(True, True, Result.UPSTREAM_ERROR, 502, "upstream_error"),
    Failure.BAD_ANSWER: Meaning(True, True, Result.UPSTREAM_ERROR, 502, "bad_upstream_answer"),
    Failure.ERROR_EVENT: Meaning(True, True, Result.UPSTREAM_ERROR, 502, "upstream_error"),
    Failure.BROKEN_STREAM: Meaning(True, True, Result.UPSTREAM_ERROR, 502, "upstream_closed"),
    Failure.EXHAUSTED: Meaning(False, True, Result.INTERNAL, 503, "gateway_exhausted"),
    Failure.BUSY: Meaning(False, True, Result.SHED, 429, "capacity_exceeded"),
}


def of_status(status: int) -> Failure | None:
    """The failure that a pool's status stands for; None for success.

    401, 403 and 407 speak of the gateway's own credentials for the pool, so they are the pool's configuration at
    fault and never the client's. 501 speaks of the request, as the 4xx class does: a runtime that was started without
    embeddings says it, and is as fit for chat as before. A redirection is no answer of a runtime: followed by a
    client it would lead past the gateway. Nor is a status of a class that HTTP does not have (RFC 9110 §15).
    """
    if status < 300:
        return None
    if status < 400 or status >= 600:
        return Failure.BAD_ANSWER
    if status == 429:
        return Failure.STATUS_429
    if status == 501:
        return Failure.STATUS_4XX
    if status in (401, 403, 407) or status >= 500:
        return Failure.STATUS_5XX
    return Failure.STATUS_4XX


def is_own_fault(status: int, body: bytes) -> bool:
    """Whether an answer of the 4xx class speaks of the runtime's own fault, and not of the request.

    LightLLM says 417 to whatever goes wrong in it (no request of ours has an ``Expect``). Others say 400 with the words
    of an exception that no request can cause. Words inside a message do not count: they may be the client's.
    """
    if status == 417:
        return True
    if len(body) > ERROR_MOST_BYTES:
        return False
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    error = told.get("error", told) if isinstance(told, dict) else told
    message = error.get("message") if isinstance(error, dict) else error
    return isinstance(message, str) and message.lower().startswith(_OWN_FAULTS)


def status_of_error(error: Mapping[str, object]) -> int:
    """The status that an error object inside a 200 stands for: its numeric ``code``, else what its words are known to
    mean (Anthropic's and OpenAI's events have words alone); 502 if it says nothing."""
    code = error.get("code")
    if isinstance(code, str) and len(code) == 3 and code.isascii() and code.isdigit():
        code = int(code)
    if isinstance(code, int):
        return code if 400 <= code < 600 else 502
    for word in (code, error.get("type")):
        if isinstance(word, str) and word in _STATUS_OF_WORD:
            return _STATUS_OF_WORD[word]
    return 502


def parse_retry_after(value: str, wall_s: float) -> int | None:
    """Whole seconds of a Retry-After field, number or HTTP date (RFC 9110 §10.2.3), capped; None if it is neither."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]), RETRY_AFTER_CAP_S)
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0, min(int(when - wall_s + 0.999), RETRY_AFTER_CAP_S))
