"""Closed enumerations. Each member's value is at once the metric label, the log field and the policy spelling."""

from enum import StrEnum
from typing import Final


class Api(StrEnum):
    """The API surface a request came in on."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    RESPONSES = "responses"
    MESSAGES = "messages"
    RERANK = "rerank"
    SCORE = "score"
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"
    AUDIO = "audio"
    MODELS = "models"
    OTHER = "other"


GENERATING: Final = frozenset({Api.CHAT, Api.COMPLETIONS, Api.RESPONSES, Api.MESSAGES})
COUNTING: Final = frozenset({Api.TOKENIZE, Api.DETOKENIZE})  # ask how much context a text takes, and need none


class Privilege(StrEnum):
    """Highest privilege among the tools a request declares. Ordered none < low < high."""

    NONE = "none"
    LOW = "low"
    HIGH = "high"


class ToolUse(StrEnum):
    """How a request uses tools; ``LOOP`` = the last message is a tool result."""

    NONE = "none"
    DECLARED = "declared"
    FORCED = "forced"
    LOOP = "loop"


class Structured(StrEnum):
    """Requested output structure."""

    NONE = "none"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    GRAMMAR = "grammar"


class Result(StrEnum):
    """How one request ended. Exactly one per request."""

    OK = "ok"
    CLIENT_ERROR = "client_error"  # the client's fault, said by the gateway or by the pool (4xx)
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"  # unknown model or path
    RATE_LIMITED = "rate_limited"
    SHED = "shed"  # no capacity within the admission deadline
    NO_POOL = "no_pool"  # constraints or rollbacks leave no eligible pool
    UPSTREAM_ERROR = "upstream_error"  # 5xx, bad answer, error event in a stream
    UPSTREAM_TRUNCATED = "upstream_truncated"  # broke off after content had reached the client
    UPSTREAM_TIMEOUT = "upstream_timeout"
    CLIENT_CANCELLED = "client_cancelled"
    INTERNAL = "internal"


class Failure(StrEnum):
    """Why one attempt at an endpoint failed."""

    CONNECT = "connect"
    REUSED_CLOSED = "reused_closed"  # a kept-alive connection died before any byte of the answer: retried for free
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    STATUS_429 = "status_429"
    STATUS_4XX = "status_4xx"
    STATUS_5XX = "status_5xx"
    BAD_ANSWER = "bad_answer"  # not HTTP, or SSE where JSON was asked
    ERROR_EVENT = "error_event"  # an error object inside a 200 stream
    BROKEN_STREAM = "broken_stream"  # closed or reset before the end
    BUSY = "busy"  # the pool's own in-flight limit
    EXHAUSTED = "exhausted"  # the gateway's own host has no file descriptor or port left to connect with


class EndpointState(StrEnum):
    """Whether an endpoint is offered new requests. ``QUARANTINED`` = attestation mismatch."""

    READY = "ready"
    UNKNOWN = "unknown"  # not probed yet: offered
    LOADING = "loading"
    UNHEALTHY = "unhealthy"
    EJECTED = "ejected"
    QUARANTINED = "quarantined"
