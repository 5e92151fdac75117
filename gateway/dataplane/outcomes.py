"""The one record of each request: built when it ends, buffered within a bound, sent to control in batches.

Control may be away: the buffer holds what it can, and what it cannot hold is dropped and counted, never waited for.
"""

from collections import deque
from typing import Final

from gateway.model.outcome import Attempt, Capture, Columns

CAPACITY: Final = 50_000  # about a minute at 800 requests a second, some 60 MB at worst
CAPTURE_BYTES: Final = 32 * 1024 * 1024  # texts for the checks; the first thing to go when control is slow or away
BATCH: Final = 512
BATCH_BYTES: Final = 4 * 1024 * 1024


class Tried:
    """One attempt, as ``model.outcome.Attempt`` describes it."""

    __slots__ = ("endpoint", "failure", "pool", "started_s", "status", "took_s")

    def __init__(  # noqa: PLR0917 - the fields in their order
        self, pool: str, endpoint: str, status: int, failure: str, started_s: float, took_s: float
    ) -> None:
        self.pool = pool
        self.endpoint = endpoint
        self.status = status
        self.failure = failure
        self.started_s = started_s
        self.took_s = took_s


class Ended:
    """What a finished request leaves, as ``model.outcome.Outcome`` describes it; ``kind`` is its kind, encoded.

    ``attempts`` None: there was one, which began ``started_s`` after the request's arrival, took ``took_s`` and
    answered with the request's status.
    """

    __slots__ = (
        "at",
        "attempts",
        "bytes_in",
        "bytes_out",
        "cached_tokens",
        "capture",
        "completion_tokens",
        "conversation",
        "events",
        "first_to_last_s",
        "kind",
        "longest_gap_s",
        "overhead_s",
        "prompt_tokens",
        "prompt_tokens_estimated",
        "queue_s",
        "request_id",
        "started_s",
        "temperature",
        "took_s",
        "total_s",
        "trace_id",
        "ttft_s",
    )

    def __init__(  # noqa: PLR0917 - the fields in their order
        self,
        kind: bytes,
        request_id: str,
        at: float,
        started_s: float,
        took_s: float,
        attempts: tuple[Attempt, ...] | None,
        queue_s: float,
        overhead_s: float,
        ttft_s: float,
        first_to_last_s: float,
        longest_gap_s: float,
        total_s: float,
        prompt_tokens_estimated: int,
        prompt_tokens: int,
        cached_tokens: int,
        completion_tokens: int,
        events: int,
        bytes_in: int,
        bytes_out: int,
        temperature: float,
        conversation: str,
        capture: Capture | None,
        trace_id: str,
    ) -> None:
        self.kind = kind
        self.request_id = request_id
        self.at = at
        self.started_s, self.took_s = started_s, took_s
        self.attempts = attempts
        self.queue_s = queue_s
        self.overhead_s = overhead_s
        self.ttft_s = ttft_s
        self.first_to_last_s = first_to_last_s
        self.longest_gap_s = longest_gap_s
        self.total_s = total_s
        self.prompt_tokens_estimated = prompt_tokens_estimated
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = cached_tokens
        self.completion_tokens = completion_tokens
        self.events = events
        self.bytes_in, self.bytes_out = bytes_in, bytes_out
        self.temperature = temperature
        self.conversation = conversation
        self.capture = capture
        self.trace_id = trace_id


class OutcomeBuffer:
    """Finished requests that control has not been sent yet, in batches of which the last is filling.

    ``captures_dropped`` counts texts given up for room since control was last told, ``dropped`` outcomes.
    """

    def __init__(self, capacity: int = CAPACITY, capture_most: int = CAPTURE_BYTES) -> None:
        self._capacity = capacity
        self._capture_most = capture_most
        self._capture_bytes = 0
        self._full: deque[tuple[Columns, int]] = deque()  # with the bytes of their texts
        self._before = 0  # outcomes in them
        self.captures_dropped = 0
        self.dropped = 0
        self._begin()

    def _begin(self) -> None:
        """An empty batch."""
        self._size = 0
        self._kinds: dict[bytes, int] = {}
        self._kind: list[int] = []
        self._request_id: list[str] = []
        self._at: list[float] = []
        self._started_s: list[float] = []
        self._took_s: list[float] = []
        self._queue_s: list[float] = []
        self._overhead_s: list[float] = []
        self._ttft_s: list[float] = []
        self._first_to_last_s: list[float] = []
        self._longest_gap_s: list[float] = []
        self._total_s: list[float] = []
        self._prompt_tokens_estimated: list[int] = []
        self._prompt_tokens: list[int] = []
        self._cached_tokens: list[int] = []
        self._completion_tokens: list[int] = []
        self._events: list[int] = []
        self._bytes_in: list[int] = []
        self._bytes_out: list[int] = []
        self._temperature: list[float] = []
        self._conversation: list[str] = []
        self._trace_id: list[str] = []
        self._attempts: dict[int, tuple[Attempt, ...]] = {}
        self._capture: dict[int, Capture] = {}

    def __len__(self) -> int:
        return self._before + len(self._kind)

    def add(self, ended: Ended) -> None:
        """Keep an outcome, or count it as dropped if the buffer is full."""
        place = len(self._kind)
        if self._before + place >= self._capacity:
            self.dropped += 1
            return
        if ended.capture is not None:
            self._keep(place, ended.capture)
        if ended.attempts is not None:
            self._attempts[place] = ended.attempts
        number = self._kinds.get(ended.kind, -1)
        if number < 0:
            number = len(self._kinds)
            self._kinds[ended.kind] = number
        self._kind.append(number)
        self._request_id.append(ended.request_id)
        self._at.append(ended.at)
        self._started_s.append(ended.started_s)
        self._took_s.append(ended.took_s)
        self._queue_s.append(ended.queue_s)
        self._overhead_s.append(ended.overhead_s)
        self._ttft_s.append(ended.ttft_s)
        self._first_to_last_s.append(ended.first_to_last_s)
        self._longest_gap_s.append(ended.longest_gap_s)
        self._total_s.append(ended.total_s)
        self._prompt_tokens_estimated.append(ended.prompt_tokens_estimated)
        self._prompt_tokens.append(ended.prompt_tokens)
        self._cached_tokens.append(ended.cached_tokens)
        self._completion_tokens.append(ended.completion_tokens)
        self._events.append(ended.events)
        self._bytes_in.append(ended.bytes_in)
        self._bytes_out.append(ended.bytes_out)
        self._temperature.append(ended.temperature)
        self._conversation.append(ended.conversation)
        self._trace_id.append(ended.trace_id)
        if place + 1 >= BATCH or self._size >= BATCH_BYTES:
            self._full.append((self._batch(), self._size))
            self._before += place + 1
            self._begin()

    def take(self) -> tuple[Columns, int]:
        """The oldest outcomes, bounded in number and bytes, and the number dropped since the last call."""
        if self._full:
            batch, size = self._full.popleft()
            self._before -= len(batch.kind)
        else:
            batch, size = self._batch(), self._size
            self._begin()
        self._capture_bytes -= size
        dropped, self.dropped = self.dropped, 0
        return batch, dropped

    def _keep(self, place: int, capture: Capture) -> None:
        """Keep texts too, if there is room for them."""
        size = len(capture.request) + len(capture.answer)
        if self._capture_bytes + size > self._capture_most:
            self.captures_dropped += 1
            return
        self._capture_bytes += size
        self._size += size
        self._capture[place] = capture

    def _batch(self) -> Columns:
        """The batch that is filling, in the order of its fields."""
        return Columns(
            list(self._kinds),
            self._kind,
            self._request_id,
            self._at,
            self._started_s,
            self._took_s,
            self._queue_s,
            self._overhead_s,
            self._ttft_s,
            self._first_to_last_s,
            self._longest_gap_s,
            self._total_s,
            self._prompt_tokens_estimated,
            self._prompt_tokens,
            self._cached_tokens,
            self._completion_tokens,
            self._events,
            self._bytes_in,
            self._bytes_out,
            self._temperature,
            self._conversation,
            self._trace_id,
            self._attempts,
            self._capture,
        )
