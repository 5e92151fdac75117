"""A mirrored request with its legs, on its way to be compared; and what the comparison found."""

import msgspec

# Failures that say nothing of a pool's answers: the leg never ran, or the gateway took its place away.
MISSING = frozenset({"shed", "busy", "no_pool", "status_429", "exhausted"})


class Leg(msgspec.Struct, array_like=True, frozen=True):
    """One run of the request. ``failure`` empty = it answered, and ``answer`` has its bytes. Seconds, -1 = unknown.

    Times count from the start of the attempt, so that a client's wait in the gateway is no pool's slowness.
    """

    pool: str
    endpoint: str
    status: int
    failure: str
    answer: bytes
    ttft_s: float
    first_to_last_s: float
    total_s: float
    prompt_tokens: int
    completion_tokens: int
    longest_gap_s: float = -1.0

    @property
    def missing(self) -> bool:
        """Whether nothing is known of this leg; a failed one is known to have given no answer."""
        return self.failure in MISSING


class Pair(msgspec.Struct, array_like=True, frozen=True):
    """What the client got (``baseline``), the candidate's answer, and for a share a second run of the baseline.

    ``at`` is the wall-clock second of the dispatch, by which the judge files it.
    """

    request_id: str
    at: float
    rule: str
    tenant: str
    model: str
    bucket: str
    task: str
    api: str
    stream: bool
    conversation: str
    request: bytes
    baseline: Leg
    candidate: Leg
    noise: Leg | None


class Count(msgspec.Struct, array_like=True, frozen=True):
    """How often an event of shadow traffic happened since the last message."""

    rule: str
    bucket: str
    event: str
    number: int


class Pairs(msgspec.Struct, tag="pairs", array_like=True, frozen=True):
    """A worker's finished pairs and counts."""

    worker: int
    batch: list[Pair]
    counts: list[Count]
