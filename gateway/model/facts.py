"""What a request is, read once from its body. Facts hold no prompt text, so nothing later can log it.

``Texts`` holds bounded slices for the classifier only; it is dropped before the decision.
"""

import msgspec

from gateway.model.enums import Api, Structured, ToolUse


class Sampling(msgspec.Struct, frozen=True):
    """Sampling settings a policy may match on. ``None`` = not given."""

    seed: bool = False
    temperature: float | None = None
    top_p: float | None = None
    n: int = 1
    logprobs: bool = False


class Facts(msgspec.Struct, frozen=True):
    """A request's shape. ``text_bytes`` counts all prompt text as UTF-8 bytes: an upper bound of byte-level BPE tokens.

    ``conversation`` is a stable digest of the explicit session hint, else of the first messages; never of a request id.
    ``session`` tells whether that hint was explicit. ``usage_in_stream``: what ``stream_options.include_usage`` said.
    ``tools`` are the declared tool names in order; ``forced_tool`` the one named by tool_choice.
    ``pending_calls`` are the tool_call_ids that the request's last messages answer. ``longest_bytes``: of several
    independent inputs (embeddings, rerank, prompt arrays) the largest, which alone must fit the context; 0 = all
    text is one context.
    """

    api: Api
    model: str
    stream: bool = False
    usage_in_stream: bool | None = None
    max_output_tokens: int | None = None
    text_bytes: int = 0
    messages: int = 0
    turns: int = 0
    tools: tuple[str, ...] = ()
    tool_use: ToolUse = ToolUse.NONE
    forced_tool: str | None = None
    pending_calls: tuple[str, ...] = ()
    structured: Structured = Structured.NONE
    sampling: Sampling = Sampling()
    images: int = 0
    audio: bool = False
    code_fence: bool = False
    table: bool = False
    citations: bool = False
    task_hint: str | None = None
    server_state: bool = False  # a stored conversation or prompt, or tools that act on the server: must not run twice
    conversation: bytes = b""
    session: bool = False
    longest_bytes: int = 0


class Texts(msgspec.Struct):
    """Bounded slices of prompt text for classification. ``parts`` are all text pieces in order, for token counting."""

    system: str = ""
    user: str = ""  # the last user message
    parts: tuple[str, ...] = ()


class Reading(msgspec.Struct):
    """A body read once: its facts, and its texts for the classifier."""

    facts: Facts
    texts: Texts


class Principal(msgspec.Struct, frozen=True):
    """Who calls. ``trusted``: may send hints in headers (task, session); ``slot``: row of the shared usage board."""

    tenant: str
    tier: str = "default"
    grants: frozenset[str] = frozenset()
    slot: int = -1
    trusted: bool = False


class Profile(msgspec.Struct, frozen=True):
    """The finite description a policy matches on, plus the numbers it may bound.

    ``context_tokens`` = estimated prompt tokens + reserved output tokens. ``bucket`` is the label built from
    ``buckets.by``.
    """

    api: Api
    model: str  # canonical name, aliases resolved
    adapter: str | None
    length: str
    task: str
    tool_use: ToolUse
    privilege: str
    structured: Structured
    tenant: str
    tier: str
    stream: bool
    images: bool
    sampling: Sampling
    prompt_tokens: int
    context_tokens: int
    turns: int
    bucket: str
