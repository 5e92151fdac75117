"""The compiled policy: one immutable generation that a request reads from start to end.

``gateway.policy.compile`` builds it from validated documents, in control (to check) and in every worker (to use).
Predicates are closures over ``Profile`` built once; nothing here reads files, clocks or sockets. Dataclasses, because
compiled code reads the attributes of its own classes at no cost, and every request reads some ninety of these.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from gateway.model.facts import Facts, Profile, Texts
from gateway.model.precision import Precision
from gateway.model.proving import Evidence, Guard, Rollout, Shadow

Predicate = Callable[[Profile], bool]


@dataclass(frozen=True)
class Timeouts:
    """Seconds. ``first_byte_s`` grows by ``first_byte_per_1k_tokens_s`` per thousand prompt tokens. ``total_s``
    None = unbounded."""

    connect_s: float = 3.0
    first_byte_s: float = 60.0
    first_byte_per_1k_tokens_s: float = 0.5
    idle_s: float = 60.0
    total_s: float | None = None


@dataclass(frozen=True)
class Limits:
    """``None`` = unlimited."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    inflight: int | None = None


@dataclass(frozen=True)
class Endpoint:
    """One base URL of a pool. ``name`` is unique over the table; ``slot`` is its row on the shared usage board."""

    name: str
    pool: str
    scheme: str
    host: str
    port: int
    base_path: str
    slot: int = -1


@dataclass(frozen=True)
class Pool:
    """Interchangeable endpoints of one model in one precision.

    ``upstream_model`` is what the runtime calls the model (None: the model's canonical name). ``adapters`` maps a
    client's adapter name to the runtime's. ``authorization`` is the header value for the pool, or None.
    ``stream_usage``: the runtime accepts ``stream_options.include_usage``. ``quarantine``: attestation enforce |
    warn | off.
    """

    name: str
    model: str
    runtime: str
    precision: Precision
    endpoints: tuple[Endpoint, ...]
    upstream_model: str | None = None
    adapters: Mapping[str, str] = field(default_factory=dict)
    authorization: bytes | None = None
    context_window: int | None = None
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    stream_usage: bool = True
    attestation: str = "enforce"
    labels: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None  # gpu | cpu; None = not declared
    gpu: str | None = None
    compute_capability: float | None = None
    gpu_count: int | None = None  # that an endpoint uses; None = not declared


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter. ``validated_on`` holds precision words (weights format) it may be served on; empty = any."""

    name: str
    validated_on: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Model:
    """A served model. ``tokenizer`` is ("tiktoken", name) or ("huggingface", path) or ("bytes", "")."""

    name: str
    aliases: tuple[str, ...] = ()
    context_window: int | None = None
    tokenizer: tuple[str, str] = ("tiktoken", "cl100k_base")
    baseline: str | None = None
    adapters: Mapping[str, Adapter] = field(default_factory=dict)


@dataclass(frozen=True)
class Tenant:
    """A caller. ``models`` None = every model. ``privileged_tools`` are extra name patterns that count as high
    for it."""

    name: str
    tier: str = "default"
    grants: frozenset[str] = frozenset()
    limits: Limits = Limits()
    models: frozenset[str] | None = None
    slot: int = -1
    trusted: bool = False
    shadow: bool = True
    capture: bool = True


def _no_objection(pool: "Pool") -> str:
    return ""


@dataclass(frozen=True)
class Constraint:
    """Narrows; every matching one applies. ``permits`` is asked per pool; ``objection`` says in words why it does not.

    ``condition`` is ``matches`` in words.
    """

    name: str
    matches: Predicate
    permits: Callable[[Pool], bool]
    requires: str  # the requirement in words, for explain and errors
    unless_measured: str | None = None
    condition: str = "always"
    objection: Callable[["Pool"], str] = _no_objection


@dataclass(frozen=True)
class Route:
    """The first that matches gives the pools in order of preference. ``condition`` is ``matches`` in words.

    A route matches only requests for a model that one of its pools serves.
    """

    name: str
    matches: Predicate
    pools: tuple[str, ...]
    condition: str = "always"


class TextSet(Protocol):
    """A set of RE2 patterns searched in one pass: the indexes that match anywhere in ``text``."""

    def search(self, text: str) -> list[int]:
        """Indexes of the matching patterns, ascending."""
        ...


MARKS: Final = ("code_fence", "table", "citations", "json_schema", "images", "tools")
"""What a request's structure may show. Bit n of a number of marks stands for the n-th."""


def marks_of(names: Iterable[str]) -> int:
    """The bits of these marks."""
    return sum(1 << MARKS.index(name) for name in set(names))


@dataclass(frozen=True)
class TaskRule:
    """A task is given to a request if any of its patterns or structure marks match. First rule wins."""

    task: str
    text: tuple[int, ...] = ()  # indexes into Classifier.user_patterns
    system: tuple[int, ...] = ()  # indexes into Classifier.system_patterns
    marks: int = 0  # bits of ``MARKS``
    apis: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Classifier:
    """How profiles are made. ``lengths`` ascending upper bounds of context tokens; the last is open-ended.

    ``privilege(tool, tenant)`` gives none | low | high by name pattern and tenant grants. ``bucket_by`` are
    Profile fields.
    """

    lengths: tuple[tuple[str, int], ...]
    over: str  # name of the length class above the last bound
    tasks: tuple[TaskRule, ...]
    default_task: str
    hint_tasks: frozenset[str]
    user_patterns: TextSet | None
    system_patterns: TextSet | None
    privilege: Callable[[str, Tenant | None], str]
    bucket_by: tuple[str, ...]
    bucket_most: int
    default_output_tokens: int = 512


@dataclass(frozen=True)
class Settings:
    """Gateway-wide behaviour that a policy may set."""

    max_body_bytes: int = 32 * 1024 * 1024
    max_inflight: int = 10_000
    queue_s: float = 5.0
    queue_most: int = 1_000
    queue_tiers: tuple[str, ...] = ()  # most important first; tiers that are not named come last, all alike
    attempts: int = 3
    retry_budget: float = 0.2
    response_headers: bool = True
    cors_origins: tuple[str, ...] = ()
    access_log: bool = True


def _whole_profile(profile: Profile) -> object:
    return profile


@dataclass(frozen=True)
class Table:
    """One generation.

    ``names`` maps every name a client may use (model, alias, adapter, base:adapter) to (model, adapter | None).

    ``keys`` maps SHA-256 digests of API keys to tenant names. ``anonymous`` is the tenant of callers without a key,
    or None. ``token_steps`` are the ascending context-token numbers at which any predicate may change its mind: with
    the other finite fields of a profile they key the memo of ``core.decide``: ``memo_key`` gives two profiles the
    same key only if no rule can tell them apart. ``buckets`` holds the labels ``core.classify`` gave, at most
    ``classifier.bucket_most``; ``labels`` remembers them by all finite fields of a profile.
    """

    generation: int
    digest: str
    models: dict[str, Model]
    pools: dict[str, Pool]
    tenants: dict[str, Tenant]
    keys: Mapping[bytes, str]
    anonymous: Tenant | None
    names: dict[str, tuple[str, str | None]]
    classifier: Classifier
    constraints: tuple[Constraint, ...]
    routes: tuple[Route, ...]
    settings: Settings
    token_steps: tuple[int, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    shadows: tuple[Shadow, ...] = ()
    guards: Mapping[str, Guard] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    memo_key: Callable[[Profile], object] = _whole_profile
    memo: dict[object, object] = field(default_factory=dict)
    buckets: dict[tuple[object, ...], str] = field(default_factory=dict)
    labels: dict[tuple[object, ...], str] = field(default_factory=dict)


Classify = Callable[[Facts, Texts], Profile]
