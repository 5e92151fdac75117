"""A small good policy as data, ways to load changed copies of it, and strategies for random ones."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from gateway.errors import PolicyError, PolicyRejectedError
from gateway.model.enums import Api, Structured, ToolUse
from gateway.model.facts import Profile, Sampling
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.document import Snapshot, SourceFile
from gateway.policy.load import Loaded, load_snapshot
from gateway.policy.secret import unresolved

BASE: dict[str, Any] = {
    "version": 1,
    "models": {
        "qwen": {
            "aliases": ["gpt-4o"],
            "context_window": "128k",
            "baseline": "bf16",
            "adapters": {"legal": {"validated_on": ["bf16", "fp8"]}},
        }
    },
    "pools": {
        "bf16": {
            "model": "qwen",
            "runtime": "vllm",
            "precision": {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"},
            "hardware": {"gpu": "H100"},
            "endpoints": ["http://bf16-0:8000", "http://bf16-1:8000"],
        },
        "fp8": {
            "model": "qwen",
            "runtime": "vllm",
            "precision": {"weights": "fp8", "activations": "fp8", "kv_cache": "fp8", "dynamic_scales": True},
            "hardware": {"gpu": "H100"},
            "endpoints": ["http://fp8-0:8000"],
            "context_window": "64k",
        },
        "int4": {
            "model": "qwen",
            "runtime": "llama.cpp",
            "precision": {"weights": "q4_k_m", "activations": "bf16", "kv_cache": "bf16"},
            "hardware": {"gpu": "A100"},
            "endpoints": ["http://int4-0:8000/v1"],
            "labels": {"zone": "b"},
        },
    },
    "tenants": {
        "acme": {"keys": ["env:ACME_KEY"], "tier": "gold", "grants": ["payments"]},
        "beta": {"keys": ["sha256:" + "ab" * 32]},
        "anonymous": {"allow": True, "tier": "free"},
    },
    "classify": {
        "lengths": {"short": "2k", "medium": "8k", "long": "32k"},
        "tasks": [{"task": "code", "text": ["```"]}, {"task": "rag", "system": ["(?i)only from the context"]}],
        "tools": {"privileged": ["pay_*"], "harmless": ["clock"], "grants": {"payments": ["refund*"]}},
    },
    "constraints": [
        {"name": "tools-16-bit", "when": {"tools": {"privilege": "high"}}, "require": {"weights": ["bf16", "fp16"]}},
        {"name": "long-kv", "when": {"context_tokens": {"gte": "32k"}}, "require": {"kv_cache": ["bf16", "fp16"]}},
    ],
    "routes": [
        {"name": "chat", "when": {"task": "chat", "length": ["short", "medium"]}, "pools": ["int4", "fp8", "bf16"]},
        {"name": "default", "pools": ["fp8", "bf16"]},
    ],
    "guards": {
        "errors": {"metric": "error_rate", "limit": "1%"},
        "quality": {"metric": "agreement", "margin_to_baseline": "2%"},
    },
}


def snapshot_of(**files: str | bytes) -> Snapshot:
    """A set of files as if read from a folder (one file: as if named itself)."""
    sources = tuple(
        SourceFile(f"{name}.yaml", text.encode() if isinstance(text, str) else text) for name, text in files.items()
    )
    return Snapshot("policies", len(sources) > 1, sources)


def text_of(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


Change = Callable[[dict[str, Any]], object]


class Policies:
    """Loads changed copies of ``BASE``."""

    def data(self, *changes: Change) -> dict[str, Any]:
        data = copy.deepcopy(BASE)
        for change in changes:
            change(data)
        return data

    def load(self, *changes: Change) -> Loaded:
        return load_snapshot(snapshot_of(policy=text_of(self.data(*changes))))

    def text(self, **files: str | bytes) -> Loaded:
        return load_snapshot(snapshot_of(**files))

    def table(self, *changes: Change) -> Table:
        return compile_table(self.load(*changes).document, 1, {}, unresolved)

    def errors(self, *changes: Change) -> list[PolicyError]:
        return self.refused(policy=text_of(self.data(*changes)))

    def refused(self, **files: str | bytes) -> list[PolicyError]:
        with pytest.raises(PolicyRejectedError) as caught:
            load_snapshot(snapshot_of(**files))
        return [finding for finding in caught.value.findings if finding.severity == "error"]

    def error(self, *changes: Change) -> PolicyError:
        found = self.errors(*changes)
        assert len(found) == 1, "\n".join(map(str, found))
        return found[0]

    def warnings(self, *changes: Change) -> list[str]:
        return [finding.message for finding in self.load(*changes).warnings]


@pytest.fixture(scope="session")
def policies() -> Policies:
    return Policies()


def profile_of(**fields: Any) -> Profile:
    values: dict[str, Any] = {
        "api": Api.CHAT,
        "model": "qwen",
        "adapter": None,
        "length": "short",
        "task": "chat",
        "tool_use": ToolUse.NONE,
        "privilege": "none",
        "structured": Structured.NONE,
        "tenant": "acme",
        "tier": "gold",
        "stream": False,
        "images": False,
        "sampling": Sampling(),
        "prompt_tokens": 100,
        "context_tokens": 600,
        "turns": 1,
        "bucket": "b",
    }
    values |= fields
    return Profile(**values | {"api": Api(values["api"])})


@pytest.fixture(scope="session")
def profile() -> Callable[..., Profile]:
    return profile_of


# Random profiles and rules over the words of BASE.

LENGTHS = (("short", 2048), ("medium", 8192), ("long", 32_768), ("over", 1 << 20))
CALLERS = (("acme", "gold"), ("beta", "default"), ("anonymous", "free"))
EDGES = st.sampled_from(
    [0, 1, 100, 2047, 2048, 2049, 8192, 8193, 32_767, 32_768, 32_769, 65_536, 65_537, 131_072, 131_073]
)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    context = draw(EDGES)
    least = next(index for index, (_, bound) in enumerate(LENGTHS) if context <= bound)
    use = draw(st.sampled_from(ToolUse))
    tenant, tier = draw(st.sampled_from(CALLERS))
    return profile_of(
        api=draw(st.sampled_from([Api.CHAT, Api.RESPONSES, Api.EMBEDDINGS])),
        adapter=draw(st.sampled_from([None, "legal"])),
        length=draw(st.sampled_from([name for name, _ in LENGTHS[least:]])),
        task=draw(st.sampled_from(["chat", "code", "rag"])),
        tool_use=use,
        privilege="none" if use is ToolUse.NONE else draw(st.sampled_from(["none", "low", "high"])),
        structured=draw(st.sampled_from(Structured)),
        tenant=tenant,
        tier=tier,
        stream=draw(st.booleans()),
        images=draw(st.booleans()),
        sampling=Sampling(
            seed=draw(st.booleans()),
            temperature=draw(st.sampled_from([None, 0.0, 0.5, 0.7, 1.0, 1.5])),
            top_p=draw(st.sampled_from([None, 0.1, 1.0])),
            n=draw(st.integers(1, 3)),
            logprobs=draw(st.booleans()),
        ),
        prompt_tokens=min(context, draw(EDGES)),
        context_tokens=context,
        turns=draw(st.integers(0, 4)),
    )


def _some(words: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=3, unique=True)


def _range(numbers: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda op, number: {op: number}, st.sampled_from(["gt", "gte", "lt", "lte"]), st.sampled_from(numbers)
    )


PRESENCE = st.sampled_from(["present", "absent"])
TOKENS = [2048, 8192, 32_768, 65_536]
_FLAT = {
    "api": _some(["chat", "responses", "embeddings"]),
    "adapter": _some(["legal"]) | PRESENCE,
    "task": _some(["chat", "code", "rag"]),
    "length": _some(["short", "medium", "long", "over"]),
    "tenant": _some(["acme", "beta", "anonymous"]),
    "tier": _some(["gold", "default", "free"]),
    "tools": st.fixed_dictionaries(
        {}, optional={"use": _some([use.value for use in ToolUse]), "privilege": _some(["none", "low", "high"])}
    ).filter(bool),
    "structured": _some([kind.value for kind in Structured]) | PRESENCE,
    "sampling": st.fixed_dictionaries(
        {},
        optional={
            "seed": PRESENCE,
            "temperature": _range([0.5, 0.7, 1.0]),
            "top_p": _range([0.1, 0.9]),
            "n": _range([1, 2]),
            "logprobs": PRESENCE,
        },
    ).filter(bool),
    "context_tokens": _range(TOKENS),
    "prompt_tokens": _range(TOKENS),
    "turns": _range([1, 2, 3]),
    "stream": st.booleans(),
    "images": PRESENCE,
}


def _conditions(nested: bool) -> st.SearchStrategy[dict[str, Any]]:
    optional: dict[str, Any] = dict(_FLAT)
    if nested:
        optional["not"] = _conditions(False) | st.lists(_conditions(False), min_size=1, max_size=2)
    keys = st.lists(st.sampled_from(sorted(optional)), min_size=1, max_size=3, unique=True)
    return keys.flatmap(lambda chosen: st.fixed_dictionaries({key: optional[key] for key in chosen}))


WHEN = _conditions(True)
TRAITS = st.sampled_from(
    [
        {"weights": ["bf16", "fp16"]},
        {"kv_cache": "bf16"},
        {"runtime": "vllm"},
        {"dynamic_scales": False},
        {"pool": ["bf16", "int4"]},
        {"labels": {"zone": "b"}},
        {"compute_capability": {"gte": "9.0"}},
    ]
)


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """Constraints and routes to put into BASE."""
    constraints = []
    for index in range(draw(st.integers(0, 4))):
        how = draw(st.sampled_from(["require", "forbid"]))
        rule = {"name": f"c{index}", how: draw(TRAITS), "refuse": True}
        constraints.append(rule | ({"when": draw(WHEN)} if draw(st.booleans()) else {}))
    routes: list[dict[str, Any]] = [
        {"name": f"r{index}", "when": draw(WHEN), "pools": draw(_some(["bf16", "fp8", "int4"]))}
        for index in range(draw(st.integers(0, 3)))
    ]
    if draw(st.booleans()):
        routes.append({"name": "last", "pools": draw(_some(["bf16", "fp8", "int4"]))})
    return {"constraints": constraints, "routes": routes or [{"name": "last", "pools": ["bf16"]}]}


@pytest.fixture(scope="session")
def strategies() -> dict[str, Any]:
    return {"profiles": profiles(), "rules": rules(), "when": WHEN}
