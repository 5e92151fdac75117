"""What is served and to whom: models, pools, tenants, and the gateway's own settings."""

# ruff: noqa: RUF012 - pydantic copies mutable defaults for every instance

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, field_validator, model_validator

from gateway.policy.numbers import as_written
from gateway.policy.schema.secrets import KeyReference, SecretReference
from gateway.policy.schema.urls import EndpointUrl, Origin
from gateway.policy.schema.values import (
    Among,
    Count,
    CountFromZero,
    Distinct,
    Duration,
    Many,
    Name,
    OrAlso,
    PositiveDuration,
    Rate,
    ServedName,
    Share,
    Size,
    Strict,
    Tokens,
    Word,
    refuse,
)

FORMATS = (
    *("bf16", "fp16", "fp32", "tf32"),
    *("fp8", "fp8_e4m3", "fp8_e5m2", "mxfp8", "fp6", "mxfp6", "fp4", "nvfp4", "mxfp4", "nf4"),
    *("int8", "int6", "int5", "int4", "int3", "int2", "int1"),
)
_GGML = re.compile(r"i?q[1-8]_(?:[01k]|k_(?:xs|s|m|l|xl)|xxs|xs|s|m|nl)|tq[12]_0")
RUNTIMES = (
    *("vllm", "sglang", "tensorrt-llm", "llama.cpp", "lightllm", "onnxruntime-genai", "transformers", "lmdeploy"),
    "openai",
)


def _format(value: str) -> str:
    word = value.strip().lower().replace("-", "_")
    if word in FORMATS or _GGML.fullmatch(word):
        return word
    return refuse(f"{value!r} is no number format", f"one of {', '.join(FORMATS)}, or a GGUF type such as q8_0, q4_k_m")


def _capability(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{float(value):.1f}"
    if isinstance(value, str) and re.fullmatch(r"\d{1,2}\.\d", value):
        return value
    return refuse('a CUDA compute capability such as "9.0" expected')


Runtime = Annotated[str, Among(RUNTIMES)]
Device = Annotated[str, Among(("gpu", "cpu"))]
Format = Annotated[str, AfterValidator(_format)]
Capability = Annotated[str, BeforeValidator(_capability)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]
RecordValue = Annotated[str, BeforeValidator(as_written)]


class Tokenizer(Strict):
    """How prompt tokens are counted. Exactly one key."""

    tiktoken: Annotated[str, Among(("cl100k_base",))] | None = None
    huggingface: Text | None = Field(default=None, description="path of a tokenizer.json")
    bytes: Literal[True] | None = Field(
        default=None, description="count UTF-8 bytes: an upper bound, no vocabulary needed"
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> "Tokenizer":
        if sum(value is not None for value in (self.tiktoken, self.huggingface, self.bytes)) != 1:
            refuse("a tokenizer has exactly one of tiktoken, huggingface, bytes")
        return self


class Adapter(Strict):
    """A LoRA adapter of a model."""

    validated_on: Many[Annotated[str, AfterValidator(lambda word: word if word == "any" else _format(word))]] = Field(
        description="weight formats on which the adapter was validated; `any` if it may run on all of them"
    )


class Model(Strict):
    """A model that clients may name."""

    aliases: list[ServedName] = Field(default=[], description="further names that clients may use")
    context_window: Annotated[Tokens, Field(ge=1)] | None = Field(
        default=None, description="prompt + output tokens at most"
    )
    tokenizer: Tokenizer = Tokenizer(tiktoken="cl100k_base")
    baseline: Name | None = Field(
        default=None, description="the pool quality is judged against, and where rollback leads"
    )
    adapters: dict[ServedName, Adapter] = {}


class Precision(Strict):
    """What a pool computes in. Weights, activations and KV cache are three statements."""

    weights: Format
    activations: Format
    kv_cache: Format
    method: Word | None = Field(default=None, description="awq, gptq, rtn, fp8-dynamic …")
    group_size: Count | None = None
    dynamic_scales: StrictBool | None = Field(
        default=None,
        description="activation scales depend on the batch; not given counts as true for quantised activations",
    )
    emulated: StrictBool = Field(
        default=False, description="the hardware has no native path: served, but in no latency claim"
    )


class Hardware(Strict):
    """What a pool runs on; the hardware gate reads it."""

    device: Device = "gpu"
    gpu: Text | None = None
    compute_capability: Capability | None = None
    count: Count | None = Field(default=None, description="GPUs an endpoint uses")


class TenantLimits(Strict):
    """What a tenant may use. A key left out means no limit."""

    requests_per_minute: Annotated[Rate, Field(ge=1)] | None = None  # below one no request would ever be let in
    tokens_per_minute: Annotated[Rate, Field(ge=1)] | None = None
    inflight: Count | None = None


class PoolLimits(Strict):
    """What a pool is given at most."""

    inflight: Count | None = Field(default=None, description="requests in flight, all endpoints together")


class Timeouts(Strict):
    """Waiting limits of one attempt at a pool."""

    connect: PositiveDuration = 3.0
    first_byte: PositiveDuration = 60.0
    first_byte_per_1k_tokens: Duration = 0.5
    idle: PositiveDuration = 60.0
    total: PositiveDuration | None = None


class Pool(Strict):
    """Interchangeable endpoints that serve one model in one precision."""

    model: ServedName
    runtime: Runtime
    precision: Precision
    hardware: Hardware | None = None
    endpoints: list[EndpointUrl] = Field(min_length=1)
    upstream_model: Text | None = Field(default=None, description="what the runtime calls the model")
    adapters: Annotated[dict[ServedName, Text] | None, OrAlso({"type": "array", "items": {"type": "string"}})] = Field(
        default=None,
        description="adapters loaded here, each with the runtime's name; left out: all validated ones, same name",
    )
    api_key: SecretReference | None = None
    context_window: Annotated[Tokens, Field(ge=1)] | None = None
    limits: PoolLimits = PoolLimits()
    timeouts: Timeouts = Timeouts()
    stream_usage: StrictBool = Field(default=True, description="the runtime accepts stream_options.include_usage")
    attestation: Annotated[str, Among(("enforce", "warn", "off"))] = "enforce"
    labels: dict[Name, RecordValue] = {}
    record: dict[Name, RecordValue] = Field(
        default={}, description="what was deployed: model hash, image, driver, calibration …"
    )

    @model_validator(mode="before")
    @classmethod
    def _adapter_list(cls, data: object) -> object:
        """A list of adapters means: each by its own name."""
        if isinstance(data, dict) and isinstance(names := data.get("adapters"), list):
            if not all(isinstance(name, str) for name in names):
                refuse("an adapter's name is text", "put it in quotes")
            return {**data, "adapters": {name: name for name in names}}
        return data

    @field_validator("endpoints")
    @classmethod
    def _distinct_endpoints(cls, endpoints: list[str]) -> list[str]:
        if len(set(endpoints)) != len(endpoints):
            refuse("the pool lists an endpoint twice", "name each once")
        return endpoints


class Tenant(Strict):
    """Who calls. `anonymous` is the tenant of callers without a key."""

    keys: list[KeyReference] = []
    allow: StrictBool | None = Field(
        default=None, description="only for `anonymous`: whether callers without a key are served"
    )
    tier: Word = "default"
    grants: list[Name] = []
    models: Many[ServedName] | None = Field(
        default=None, description="models and adapters it may use, by any of their names; left out: all"
    )
    limits: TenantLimits = TenantLimits()
    trusted: StrictBool = Field(default=False, description="may name the task of a request")
    shadow: StrictBool = Field(default=True, description="false: its traffic is never mirrored")
    capture: StrictBool = Field(default=True, description="false: its texts are never kept")


class Queue(Strict):
    """Admission when all permitted pools are full."""

    wait: Duration = 5.0
    most: CountFromZero = 1000
    tiers: Distinct[Word] = Field(
        default=[], description="most important first: they wait in front, and a full queue refuses the last ones"
    )


class Gateway(Strict):
    """The gateway's own limits and habits."""

    max_body: Size = 32 * 1024 * 1024
    max_inflight: Count = 10_000
    queue: Queue = Queue()
    attempts: Annotated[int, Field(ge=1, le=10)] = 3
    retry_budget: Share = 0.2
    response_headers: StrictBool = True
    cors_origins: list[Origin] = []
    access_log: StrictBool = True
