"""How a runtime's API departs from OpenAI's, as one frozen value that the data plane reads on each request.

It owns the vocabulary of differences and the few pure rules over it (how to name a LoRA adapter, whom a status
blames). The facts themselves stand in each runtime's own module, with where they were seen. No I/O.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class StreamUsage(StrEnum):
    """How token usage comes in a stream."""

    ON_REQUEST = "on_request"  # only with stream_options.include_usage, as a last chunk with empty choices
    ALWAYS = "always"  # on the last choice chunk, whatever was asked
    NEVER = "never"


class AdapterStyle(StrEnum):
    """How a request names a LoRA adapter."""

    NAME = "name"  # the adapter's own name in `model`
    BASE_COLON_ADAPTER = "base_colon_adapter"  # `model: "base:adapter"`
    LORA_REQUEST = "lora_request"  # an object beside `model`: {lora_name, lora_int_id, lora_path}
    LORA_SCALES = "lora_scales"  # a list beside `model`: [{id, scale}]
    NONE = "none"


class ErrorShape(StrEnum):
    """Shapes of error bodies that a runtime is known to send."""

    OPENAI = "openai"  # {"error": {"message", "type", "param", "code"}}
    ERROR_TEXT = "error_text"  # {"error": "text"}
    FLAT = "flat"  # {"object": "error", "message", "type", "code"}
    MESSAGE = "message"  # {"message": "text"}
    DETAIL = "detail"  # {"detail": "text" | [...] | {...}}
    TEXT = "text"  # not JSON


class ServedName(StrEnum):
    """Which name `model` must carry upstream."""

    LISTED = "listed"  # an id of /v1/models
    PATH = "path"  # the path or hub name it was started with; /v1/models may not list it
    ANY = "any"  # not checked


class LoadFreshness(StrEnum):
    """How far the reported load can be trusted for balancing."""

    LIVE = "live"  # counts at the moment of the scrape
    LAGGING = "lagging"  # refreshed by a timer or by completions only
    NONE = "none"  # reports no load


class Blame(StrEnum):
    """Whose fault an upstream error status is."""

    CLIENT = "client"
    POOL = "pool"
    BUSY = "busy"  # the pool protects itself: retry elsewhere, do not open a breaker


class Quirks(msgspec.Struct, frozen=True):
    """Differences of one runtime. The defaults are those of a faithful OpenAI server.

    ``stream_to_cancel``: a dropped connection ends the generation only when the request streams, so an unstreamed
    request is better sent streamed and put together here. ``keepalive_idle_s``: after how long the server closes an
    idle connection; close earlier to avoid the race. ``keepalive_requests``: requests it takes on one connection
    (``None`` = no limit). ``ignored_fields`` are accepted and not obeyed, so a request that needs one must not be
    sent here. ``usage_counts_all_choices``: with ``n`` > 1, completion tokens are the sum over the choices.
    ``lists_adapters``: /v1/models (or the runtime's own list) holds the loaded LoRA adapters. ``pool_fault_statuses``
    and ``pool_fault_texts``: 4xx answers that are the pool's fault all the same. ``busy_texts``: phrases of a 503
    that means "full", not "broken". ``leaks_paths``: error texts may hold paths of the server.
    """

    stream_usage: StreamUsage = StreamUsage.ON_REQUEST
    rejects_unknown_fields: bool = False
    adapter_style: AdapterStyle = AdapterStyle.NAME
    lists_adapters: bool = False
    done_marker: bool = True
    error_shapes: tuple[ErrorShape, ...] = (ErrorShape.OPENAI,)
    validates_model: bool = True
    served_name: ServedName = ServedName.LISTED
    stream_to_cancel: bool = False
    usage_counts_all_choices: bool = True
    ignored_fields: frozenset[str] = frozenset()
    pool_fault_statuses: frozenset[int] = frozenset()
    pool_fault_texts: tuple[str, ...] = ()
    busy_texts: tuple[str, ...] = ()
    leaks_paths: bool = False
    keepalive_idle_s: float = 5.0
    keepalive_requests: int | None = None
    health_path: str = "/health"
    health_timeout_s: float = 3.0
    health_interval_s: float = 10.0
    load_freshness: LoadFreshness = LoadFreshness.LIVE
    load_interval_s: float = 1.0
    attest_interval_s: float = 60.0

    @property
    def supports_stream_usage(self) -> bool:
        """Whether adding ``stream_options.include_usage`` to a streamed request is obeyed."""
        return self.stream_usage is StreamUsage.ON_REQUEST

    def honours(self, field: str) -> bool:
        """Whether a request field is obeyed, and not silently dropped."""
        return field not in self.ignored_fields


class LoraAdapter(msgspec.Struct, frozen=True):
    """A LoRA adapter as the pool knows it. ``id`` and ``path`` are needed by the styles that name it by them."""

    name: str
    id: int | None = None
    path: str | None = None


class Spelling(msgspec.Struct, frozen=True):
    """What to write upstream: ``model``, and ``fields`` to add to the body."""

    model: str
    fields: Mapping[str, object] = {}


def spell(style: AdapterStyle, base: str, adapter: LoraAdapter | None) -> Spelling:
    """Name ``adapter`` on a pool that serves ``base``.

    Raises ``LookupError``, naming what is missing, when this style cannot name the adapter.
    """
    if adapter is None:
        return Spelling(base)
    if style is AdapterStyle.NAME:
        return Spelling(adapter.name)
    if style is AdapterStyle.BASE_COLON_ADAPTER:
        return Spelling(f"{base}:{adapter.name}")
    if style is AdapterStyle.LORA_SCALES:
        if adapter.id is None:
            raise LookupError(
                f"adapter {adapter.name!r} has no id on this pool: load it there (--lora) and probe again"
            )
        return Spelling(base, {"lora": [{"id": adapter.id, "scale": 1.0}]})
    if style is AdapterStyle.LORA_REQUEST:
        if adapter.id is None or adapter.path is None:
            raise LookupError(f"adapter {adapter.name!r} needs an id and a path on this pool: give both in the policy")
        request = {"lora_name": adapter.name, "lora_int_id": adapter.id, "lora_path": adapter.path}
        return Spelling(base, {"lora_request": request})
    raise LookupError(f"this pool's runtime serves no LoRA adapter, so not {adapter.name!r} either")


def blame(quirks: Quirks, status: int, message: str) -> Blame:
    """Whose fault an error status is, by the status and the message of the error body.

    The client's key never reaches a pool, so 401 and 403 are the gateway's configuration: the pool's column.
    """
    text = message.casefold()
    if status == 429:
        return Blame.BUSY
    if status == 503 and any(phrase in text for phrase in quirks.busy_texts):
        return Blame.BUSY
    if status >= 500 or status in (401, 403) or status in quirks.pool_fault_statuses:
        return Blame.POOL
    if any(phrase in text for phrase in quirks.pool_fault_texts):
        return Blame.POOL
    return Blame.CLIENT
