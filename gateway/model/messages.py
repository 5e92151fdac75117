"""What control and workers say to each other over the unix socket.

Frames are a 4-byte big-endian length and one msgpack-encoded, tagged message. Workers dial, control listens. Control
may be gone at any time: a worker goes on with the table it has and buffers outcomes within a bound.
"""

import msgspec

from gateway.model.pair import Pairs


class Hello(msgspec.Struct, tag="hello", array_like=True, frozen=True):
    """First frame of a worker. ``generation`` is the one it serves (0 = none yet)."""

    worker: int
    pid: int
    generation: int


class Prepare(msgspec.Struct, tag="prepare", array_like=True, frozen=True):
    """Compile this generation and say whether it worked; do not use it yet."""

    generation: int
    document: bytes
    slots: dict[str, int]


class Prepared(msgspec.Struct, tag="prepared", array_like=True, frozen=True):
    """Answer to ``Prepare``; ``error`` empty = ready to apply."""

    worker: int
    generation: int
    error: str


class Apply(msgspec.Struct, tag="apply", array_like=True, frozen=True):
    """Serve new requests by this prepared generation from now on. Cannot fail."""

    generation: int


class EndpointReport(msgspec.Struct, array_like=True, frozen=True):
    """State and load of one endpoint as control's probes see it. ``running``/``waiting`` -1 = unknown; ``age_s``
    since measured."""

    endpoint: str
    state: str
    running: float
    waiting: float
    kv_usage: float
    age_s: float


class Endpoints(msgspec.Struct, tag="endpoints", array_like=True, frozen=True):
    """Control's latest view of the endpoints; sent on change and at least every few seconds."""

    reports: list[EndpointReport]


class Outcomes(msgspec.Struct, tag="outcomes", array_like=True, frozen=True):
    """A batch of finished requests: ``outcome.Columns``, encoded, which control reads later and many at once.

    ``dropped`` counts outcomes lost since the last batch because the buffer was full, ``captures_dropped`` outcomes
    whose texts were given up for room.
    """

    worker: int
    dropped: int
    batch: bytes
    captures_dropped: int = 0


class Feedback(msgspec.Struct, tag="feedback", array_like=True, frozen=True):
    """What an application says of one of its answers. ``score`` 0 (bad) to 1 (good), -1 = only a label was given."""

    worker: int
    at: float
    tenant: str
    request_id: str
    label: str
    score: float


class EndpointLocal(msgspec.Struct, array_like=True, frozen=True):
    """One worker's own view of an endpoint."""

    endpoint: str
    state: str
    inflight: int
    idle: int


class Stats(msgspec.Struct, tag="stats", array_like=True, frozen=True):
    """A worker's gauges, once a second. ``inflight`` by pool name; ``loop_lag_s`` is the worst since the last
    report."""

    worker: int
    generation: int
    connections: int
    streams: int
    queued: int
    inflight: dict[str, int]
    endpoints: list[EndpointLocal]
    loop_lag_s: float
    draining: bool


LATCHED_FILE = "rollouts.msgpack"
"""In the state directory: the ``Rollouts`` message that holds, written by control before any worker is told."""


class Rollouts(msgspec.Struct, tag="rollouts", array_like=True, frozen=True):
    """Latched rollout shares, applied at once: (rollout's identity, bucket) → candidate share in basis points; -1 =
    rolled back. By identity, so that a share never holds for a rollout of the same name with other pools."""

    version: int
    shares: dict[str, dict[str, int]]


class Start(msgspec.Struct, array_like=True, frozen=True):
    """Attempts at a pool for requests of a rollout's bucket that arrived in one second; their outcomes are to come."""

    second: int
    bucket: str
    pool: str
    number: int


class Starts(msgspec.Struct, tag="starts", array_like=True, frozen=True):
    """Dispatches since the last message, so that the judge knows which outcomes are missing."""

    worker: int
    counts: list[Start]


ToWorker = Prepare | Apply | Endpoints | Rollouts
ToControl = Hello | Prepared | Outcomes | Pairs | Feedback | Starts | Stats
