"""What a request is, read once from its body. Facts hold no prompt text, so nothing later can log it.

``Texts`` holds bounded slices for the classifier only; it is dropped before the decision. All of these are made and
read for every request, so they spell their ``__init__`` out: compiled, it costs a tenth of a generated one.
"""

from dataclasses import dataclass
from typing import Final

from gateway.model.enums import Api, Structured, ToolUse


@dataclass(init=False, unsafe_hash=True)
class Sampling:
    """Sampling settings a policy may match on. ``None`` = not given."""

    seed: Final[bool]
    temperature: Final[float | None]
    top_p: Final[float | None]
    n: Final[int]
    logprobs: Final[bool]

    def __init__(
        self,
        seed: bool = False,
        temperature: float | None = None,
        top_p: float | None = None,
        n: int = 1,
        logprobs: bool = False,
    ) -> None:
        self.seed = seed
        self.temperature = temperature
        self.top_p = top_p
        self.n = n
        self.logprobs = logprobs


PLAIN: Final = Sampling()
"""Nothing given."""


@dataclass(init=False, unsafe_hash=True)
class Facts:
    """A request's shape. ``text_bytes`` counts all prompt text as UTF-8 bytes: an upper bound of byte-level BPE tokens.

    ``conversation`` is a stable digest of the explicit session hint, else of the first messages; never of a request id.
    ``session`` tells whether that hint was explicit. ``usage_in_stream``: what ``stream_options.include_usage`` said.
    ``tools`` are the declared tool names in order; ``forced_tool`` the one named by tool_choice.
    ``longest_bytes``: of several independent inputs (embeddings, rerank, prompt arrays) the largest, which alone must
    fit the context; 0 = all text is one context. ``truncates``: the runtime is asked to cut what is too long.
    """

    api: Final[Api]
    model: Final[str]
    stream: Final[bool]
    usage_in_stream: Final[bool | None]
    max_output_tokens: Final[int | None]
    text_bytes: Final[int]
    messages: Final[int]
    turns: Final[int]
    tools: Final[tuple[str, ...]]
    tool_use: Final[ToolUse]
    forced_tool: Final[str | None]
    structured: Final[Structured]
    sampling: Final[Sampling]
    images: Final[int]
    audio: Final[bool]
    code_fence: Final[bool]
    table: Final[bool]
    citations: Final[bool]
    task_hint: Final[str | None]
    server_state: Final[bool]  # a stored conversation or prompt, or tools that act on the server: must not run twice
    conversation: Final[bytes]
    session: Final[bool]
    longest_bytes: Final[int]
    truncates: Final[bool]

    def __init__(
        self,
        api: Api,
        model: str,
        stream: bool = False,
        usage_in_stream: bool | None = None,
        max_output_tokens: int | None = None,
        text_bytes: int = 0,
        messages: int = 0,
        turns: int = 0,
        tools: tuple[str, ...] = (),
        tool_use: ToolUse = ToolUse.NONE,
        forced_tool: str | None = None,
        structured: Structured = Structured.NONE,
        sampling: Sampling = PLAIN,
        images: int = 0,
        audio: bool = False,
        code_fence: bool = False,
        table: bool = False,
        citations: bool = False,
        task_hint: str | None = None,
        server_state: bool = False,
        conversation: bytes = b"",
        session: bool = False,
        longest_bytes: int = 0,
        truncates: bool = False,
    ) -> None:
        self.api = api
        self.model = model
        self.stream = stream
        self.usage_in_stream = usage_in_stream
        self.max_output_tokens = max_output_tokens
        self.text_bytes = text_bytes
        self.messages = messages
        self.turns = turns
        self.tools = tools
        self.tool_use = tool_use
        self.forced_tool = forced_tool
        self.structured = structured
        self.sampling = sampling
        self.images = images
        self.audio = audio
        self.code_fence = code_fence
        self.table = table
        self.citations = citations
        self.task_hint = task_hint
        self.server_state = server_state
        self.conversation = conversation
        self.session = session
        self.longest_bytes = longest_bytes
        self.truncates = truncates


@dataclass(init=False, unsafe_hash=True)
class Texts:
    """Bounded slices of prompt text for classification. ``parts`` are all text pieces in order, for token counting."""

    system: Final[str]
    user: Final[str]  # the last user message
    parts: Final[tuple[str, ...]]

    def __init__(self, system: str = "", user: str = "", parts: tuple[str, ...] = ()) -> None:
        self.system = system
        self.user = user
        self.parts = parts


@dataclass(init=False, unsafe_hash=True)
class Reading:
    """A body read once: its facts, and its texts for the classifier."""

    facts: Final[Facts]
    texts: Final[Texts]

    def __init__(self, facts: Facts, texts: Texts) -> None:
        self.facts = facts
        self.texts = texts


@dataclass(init=False, unsafe_hash=True)
class Principal:
    """Who calls. ``trusted``: may name the task of a request; ``slot``: row of the shared usage board."""

    tenant: Final[str]
    tier: Final[str]
    grants: Final[frozenset[str]]
    slot: Final[int]
    trusted: Final[bool]

    def __init__(
        self,
        tenant: str,
        tier: str = "default",
        grants: frozenset[str] = frozenset(),
        slot: int = -1,
        trusted: bool = False,
    ) -> None:
        self.tenant = tenant
        self.tier = tier
        self.grants = grants
        self.slot = slot
        self.trusted = trusted


@dataclass(init=False, unsafe_hash=True)
class Profile:
    """The finite description a policy matches on, plus the numbers it may bound.

    ``context_tokens`` = estimated prompt tokens + reserved output tokens. ``bucket`` is the label built from
    ``buckets.by``. ``least_tokens``: what the longest prompt has even if the estimate errs upwards; 0 where the runtime
    is asked to cut it.
    """

    api: Final[Api]
    model: Final[str]  # canonical name, aliases resolved
    adapter: Final[str | None]
    length: Final[str]
    task: Final[str]
    tool_use: Final[ToolUse]
    privilege: Final[str]
    structured: Final[Structured]
    tenant: Final[str]
    tier: Final[str]
    stream: Final[bool]
    images: Final[bool]
    sampling: Final[Sampling]
    prompt_tokens: Final[int]
    context_tokens: Final[int]
    turns: Final[int]
    bucket: Final[str]
    least_tokens: Final[int]

    def __init__(
        self,
        api: Api,
        model: str,
        adapter: str | None,
        length: str,
        task: str,
        tool_use: ToolUse,
        privilege: str,
        structured: Structured,
        tenant: str,
        tier: str,
        stream: bool,
        images: bool,
        sampling: Sampling,
        prompt_tokens: int,
        context_tokens: int,
        turns: int,
        bucket: str,
        least_tokens: int = 0,
    ) -> None:
        self.api = api
        self.model = model
        self.adapter = adapter
        self.length = length
        self.task = task
        self.tool_use = tool_use
        self.privilege = privilege
        self.structured = structured
        self.tenant = tenant
        self.tier = tier
        self.stream = stream
        self.images = images
        self.sampling = sampling
        self.prompt_tokens = prompt_tokens
        self.context_tokens = context_tokens
        self.turns = turns
        self.bucket = bucket
        self.least_tokens = least_tokens
