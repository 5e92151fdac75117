"""The one record a request leaves behind. Workers make it, control alone reads it; it travels as msgpack, by column.

Most of its fields take few different values. They are its ``Kind``, a piece of its own that travels as bytes: a worker
makes those once for all requests alike, and control reads them once. What is each request's own travels as one list
for each field (``Columns``): neither end makes an object of it, and ``Outcome`` is for those who want it whole.

No prompt or answer text, no key. Times are wall-clock seconds (``*_at``) or durations in seconds (``*_s``). Nothing
here can be part of a cycle, so the collector need not look at it.
"""

import msgspec


class Attempt(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One try at one endpoint. ``failure`` is a ``Failure`` value or empty for the attempt that answered."""

    pool: str
    endpoint: str
    status: int
    failure: str
    started_s: float  # since the request's arrival
    took_s: float


class Capture(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What the checks need of one exchange: the request body as the client sent it (decoded), the answer as relayed.

    Only where the policy asks for checks; bounded; read by control's scorers and dropped, never logged. ``cut``: the
    answer was longer than the bound.
    """

    request: bytes
    answer: bytes
    cut: bool


class Kind(msgspec.Struct, array_like=True, frozen=True, eq=False, gc=False):
    """What an outcome has in common with many others: names that a policy bounds, enumerations, flags.

    Compared by identity, which makes it a quick key.
    """

    generation: int
    worker: int
    api: str
    tenant: str
    tier: str
    model: str
    adapter: str
    bucket: str
    length: str
    task: str
    privilege: str
    tool_use: str
    structured: str
    stream: bool
    rule: str
    arm: str
    rollout: str
    pool: str
    endpoint: str
    precision: str
    status: int
    result: str
    failure: str
    error_code: str
    constraints: tuple[str, ...]
    finish_reason: str
    seed: bool


class Outcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How a request went. Durations are ``-1`` and token counts ``-1`` where unknown.

    ``ttft_s``: arrival to first content, reasoning or tool-call delta reaching the gateway. ``queue_s``: wait for
    admission.
    ``overhead_s``: time the gateway itself spent before the first attempt started, without the queue.
    ``first_to_last_s``: first content to last arrival, so TPOT = first_to_last_s / (completion_tokens - 1); ``-1`` too
    where tokens did not come one after another.
    ``longest_gap_s``: longest silence between two arrivals of a stream after its first content.
    """

    kind: Kind
    request_id: str
    at: float
    attempts: tuple[Attempt, ...]
    queue_s: float
    overhead_s: float
    ttft_s: float
    first_to_last_s: float
    longest_gap_s: float
    total_s: float
    prompt_tokens_estimated: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    events: int
    bytes_in: int
    bytes_out: int
    temperature: float
    conversation: str  # hex digest, joins turns; carries no text
    capture: Capture | None
    trace_id: str


class Columns(msgspec.Struct, array_like=True, gc=False):
    """Outcomes as they travel: ``Outcome``'s fields, a list for each, all of one length.

    ``kinds`` are the encoded kinds met here, once each, and ``kind`` the place of each outcome's among them. Most
    requests have one attempt, which answered with the request's status: its pool and endpoint are the kind's, and only
    ``started_s`` and ``took_s`` are its own. The attempts of all others, and what else few requests have, come by
    place.
    """

    kinds: list[bytes]
    kind: list[int]
    request_id: list[str]
    at: list[float]
    started_s: list[float]
    took_s: list[float]
    queue_s: list[float]
    overhead_s: list[float]
    ttft_s: list[float]
    first_to_last_s: list[float]
    longest_gap_s: list[float]
    total_s: list[float]
    prompt_tokens_estimated: list[int]
    prompt_tokens: list[int]
    cached_tokens: list[int]
    completion_tokens: list[int]
    events: list[int]
    bytes_in: list[int]
    bytes_out: list[int]
    temperature: list[float]
    conversation: list[str]
    trace_id: list[str]
    attempts: dict[int, tuple[Attempt, ...]]
    capture: dict[int, Capture]
