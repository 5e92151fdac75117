"""How a candidate pool proves itself, as values: guards, rollout stages, shadow rules.

``gateway.policy.compile`` builds them; the judge, the rollout engine and the shadow legs read them. Shares of live
traffic are basis points (1/100 of a percent), other shares are numbers from 0 to 1.
"""

from collections.abc import Callable

import msgspec

from gateway.model.facts import Profile


class Guard(msgspec.Struct, frozen=True):
    """A limit on one metric of a (bucket, pool).

    ``limit``: a share, or seconds for a latency. ``quantile`` only for latencies. ``margin``: tolerated loss against
    the baseline, 0 to 1. ``or_ratio``: a latency within this multiple of the baseline's also passes. ``ratio``:
    tolerated multiple of the baseline's failures. ``feed``: product | vote | session. ``critical`` guards decide
    alone. ``check``: the recorded check that ``metric == "check"`` counts.
    """

    name: str
    metric: str
    limit: float | None = None
    quantile: float | None = None
    margin: float | None = None
    or_ratio: float | None = None
    ratio: float | None = None
    critical: bool = False
    feed: str = "product"
    block_s: float = 10.0
    deadline_s: float | None = None
    check: str | None = None


class Stage(msgspec.Struct, frozen=True):
    """One step of a rollout. ``kind``: shadow | weight. ``most_s``: after it without enough evidence, hold and tell."""

    kind: str
    share_bp: int
    least_s: float
    least_requests: int
    least_pairs: int
    most_s: float


class Rollout(msgspec.Struct, frozen=True):
    """A candidate on its way through stages, bucket by bucket.

    ``identity`` changes when it is another rollout: other pools or other buckets, not other stages or guards; state
    survives a reload while it stays. ``matches`` looks at bucket fields only. ``reentry_after_s`` None = only a
    person lets a rolled-back bucket in again. ``control_bp`` stays on the baseline after 100 %.
    """

    name: str
    identity: str
    model: str
    candidate: str
    baseline: str
    matches: Callable[[Profile], bool]
    condition: str
    stages: tuple[Stage, ...]
    guards: tuple[str, ...]
    approvals: int = 0
    control_bp: int = 200
    reentry_after_s: float | None = None
    reentry_most: int = 1


class Shadow(msgspec.Struct, frozen=True):
    """Which requests are mirrored, to where, and how much of it. ``sample``, ``noise`` and ``likelihood`` are shares.

    ``rate``: requests per second at most, None = unlimited. ``queue``: waiting legs at most; the next is dropped and
    counted. ``likelihood_tokens``: longest text that is scored, where its scores are held together.
    """

    name: str
    matches: Callable[[Profile], bool]
    condition: str
    sample: float
    model: str
    candidate: str
    baseline: str
    noise: float = 0.2
    inflight: int = 16
    rate: float | None = None
    queue: int = 64
    timeout_s: float = 120.0
    likelihood: float = 0.0
    likelihood_tokens: int = 1_024
    embedding: bool = False
    judge: bool = False


class Evidence(msgspec.Struct, frozen=True):
    """Which share of answers is checked, and how long consequences are waited for.

    ``structured``, ``tools``, ``other`` are shares; ``refusals`` further RE2 patterns that tell a refusal.
    """

    structured: float = 1.0
    tools: float = 1.0
    other: float = 0.02
    remember_s: float = 1800.0
    remember_most: int = 100_000
    answer_bytes: int = 256 * 1024
    refusals: tuple[str, ...] = ()


class Samples(msgspec.Struct, frozen=True):
    """Which texts are kept for replay: ``keep`` and ``tenants`` hold off | incidents | a share from 0 to 1.

    ``key`` is the secret that encrypts them; None when nothing is kept.
    """

    keep: str | float = "off"
    tenants: dict[str, str | float] = {}
    redact: tuple[str, ...] = ()
    most_bytes: int = 64 * 1024
    retention_s: float = 604_800.0
    key: str | None = None


class Webhook(msgspec.Struct, frozen=True):
    """Who is told. ``style``: generic | slack | alertmanager. ``secret`` signs the body."""

    name: str
    url: str
    style: str
    events: frozenset[str]
    secret: str | None
    timeout_s: float


class Operator(msgspec.Struct, frozen=True):
    """Who may use the admin API. ``token`` is the SHA-256 of the token; ``role``: viewer | operator | approver."""

    name: str
    token: bytes
    role: str


class Oversight(msgspec.Struct, frozen=True):
    """What control alone needs of a policy: secrets in it are resolved, so it never leaves the process.

    ``database`` None = the deployment's default. ``false_rollbacks_per_year`` is the budget of all series together,
    divided over ``series`` slots.
    """

    database: str | None
    retention_s: float
    samples: Samples
    webhooks: tuple[Webhook, ...]
    operators: tuple[Operator, ...]
    false_rollbacks_per_year: float
    series: int
