"""What must be written down with a deployment, and what of it is missing.

Owns the list: model, quantisation, runtime, system, kernels, KV cache, evaluation, way back. Each entry says where its
value may come from (declared in the policy, told by the runtime) and for which deployments it applies at all: nobody
needs a group size for BF16 or a driver for a CPU. Pure; called by `quantgate record` and by control's admin API.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from gateway.model.precision import FULL, bits
from gateway.model.proving import Rollout, Samples
from gateway.model.table import Table


class State(StrEnum):
    """Whether an entry is on record."""

    KNOWN = "known"
    MISSING = "missing"
    NOT_APPLICABLE = "not applicable"


class Entry(msgspec.Struct, frozen=True):
    """One line of a record. ``declared`` by the policy, ``attested`` by the runtime; ``write``: the key of the pool's
    `record:` that would fill it, empty where it comes from elsewhere.
    """

    group: str
    name: str
    state: State
    declared: str = ""
    attested: str = ""
    write: str = ""


class Plan(msgspec.Struct, frozen=True):
    """What a policy and the records say around a pool. ``evaluated``: checked answers by bucket in the last weeks;
    None where nobody looked. ``back_to``: the pool that traffic returns to.
    """

    tokenizer: str = ""
    adapters: tuple[str, ...] = ()
    is_baseline: bool = False
    back_to: str = ""
    stages: str = ""
    guards: tuple[str, ...] = ()
    samples: str = ""
    evaluated: Mapping[str, int] | None = None


class _Facts(msgspec.Struct, frozen=True):
    """Everything an entry may look at."""

    declared: Mapping[str, Any]
    attested: Mapping[str, Any]
    plan: Plan

    @property
    def quantised(self) -> bool:
        """Weights or KV cache below 16 bits."""
        return any(self.part(name) not in FULL for name in ("weights", "kv_cache"))

    def part(self, name: str) -> str:
        """A declared format."""
        precision = self.declared.get("precision")
        return str(precision.get(name) or "bf16") if isinstance(precision, Mapping) else "bf16"

    @property
    def on_gpu(self) -> bool:
        """Unless it is declared to be a CPU."""
        return self.declared.get("device") != "cpu"

    def record(self, *names: str) -> str:
        """The first of these keys that the pool's `record:` has."""
        return next((str(found) for name in names if (found := self.declared.get(f"record.{name}"))), "")

    def told(self, *names: str) -> str:
        """The first of these that the runtime told, on top or among its settings."""
        device = self.attested.get("device")
        for name in names:
            for source in (self.attested, device if isinstance(device, Mapping) else {}):
                text = _text(source.get(name))
                if text:
                    return text
        return ""


Read = Callable[[_Facts], str]
Applies = Callable[[_Facts], bool]


class _Item(msgspec.Struct, frozen=True):
    """Where one entry comes from. ``keys``: names in `record:`, the first is the one to write."""

    group: str
    name: str
    keys: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    declared: Read | None = None
    applies: Applies | None = None


def entries(declared: Mapping[str, Any], attested: Mapping[str, Any] | None, plan: Plan) -> list[Entry]:
    """The record of one pool. ``declared`` is `control.evidence.deployment_record`'s, ``attested`` an attestation as
    plain values, None where no runtime was asked.
    """
    facts = _Facts(declared, attested or {}, plan)
    return [_entry(item, facts) for item in _ITEMS]


def plan_of(table: Table, samples: Samples, pool: str, evaluated: Mapping[str, int] | None) -> Plan:
    """What a compiled policy says around one of its pools."""
    ours = table.pools[pool]
    model = table.models.get(ours.model)
    rollouts = [rollout for rollout in table.rollouts if rollout.candidate == pool]
    baseline = (model.baseline if model else None) or ""
    back_to = ", ".join(dict.fromkeys(rollout.baseline for rollout in rollouts)) or baseline
    kept = samples.keep != "off" or any(rule != "off" for rule in samples.tenants.values())
    return Plan(
        tokenizer=" ".join(part for part in model.tokenizer if part) if model else "",
        adapters=tuple(ours.adapters),
        is_baseline=pool == baseline,
        back_to=back_to if back_to != pool else "",
        stages="; ".join(f"{rollout.name}: {_stages(rollout)}" for rollout in rollouts),
        guards=tuple(dict.fromkeys(guard for rollout in rollouts for guard in rollout.guards)),
        samples=f"kept: {samples.keep}" if kept else "",
        evaluated=evaluated,
    )


def _stages(rollout: Rollout) -> str:
    return " → ".join(f"{stage.kind} {stage.share_bp / 100:g} %" for stage in rollout.stages)


def missing(found: list[Entry]) -> list[Entry]:
    """Those that somebody has to write down."""
    return [entry for entry in found if entry.state is State.MISSING]


def _entry(item: _Item, facts: _Facts) -> Entry:
    own = item.declared(facts) if item.declared is not None else ""
    declared = own or facts.record(*item.keys)
    attested = facts.told(*item.tells)
    write = item.keys[0] if item.keys else ""
    if declared or attested:
        return Entry(item.group, item.name, State.KNOWN, declared, attested, write)
    needed = item.applies is None or item.applies(facts)
    return Entry(item.group, item.name, State.MISSING if needed else State.NOT_APPLICABLE, write=write)


def _text(value: object) -> str:
    if value is None or value is False:
        return ""
    if isinstance(value, Mapping):  # an observation, or a served model
        return str(value.get("value") or value.get("name") or "")
    if isinstance(value, list | tuple):
        return ", ".join(text for item in value if (text := _text(item)))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _field(name: str) -> Read:
    return lambda facts: _text(facts.declared.get(name))


def _part(name: str) -> Read:
    return lambda facts: facts.part(name)


def _precision(name: str) -> Read:
    def read(facts: _Facts) -> str:
        precision = facts.declared.get("precision")
        return _text(precision.get(name)) if isinstance(precision, Mapping) else ""

    return read


def _bits(facts: _Facts) -> str:
    return str(bits(facts.part("weights")))


def _grouped(facts: _Facts) -> bool:
    """4-bit formats without a group size of their own in the name (GGUF fixes 32 in Q4_0, MX formats 32 too)."""
    weights = facts.part("weights")
    return bits(weights) <= 4 and not weights.startswith(("q", "nvfp", "mxfp"))


def _calibrated(facts: _Facts) -> bool:
    """Rounding to nearest needs no data: GGUF's legacy formats; everything else may have seen some."""
    return facts.quantised and not facts.part("weights").startswith("q")


def _several_gpus(facts: _Facts) -> bool:
    parallel = (
        facts.record("tensor_parallel", "parallelism")
        or facts.told("tensor_parallel")
        or _text(facts.declared.get("gpu_count"))
    )
    return facts.on_gpu and parallel not in ("", "1")


def _quantised(facts: _Facts) -> bool:
    return facts.quantised


def _on_gpu(facts: _Facts) -> bool:
    return facts.on_gpu


def _candidate(facts: _Facts) -> bool:
    return not facts.plan.is_baseline


def _evaluated(facts: _Facts) -> str:
    found = facts.plan.evaluated
    if not found:
        return ""
    return f"{sum(found.values()):,} checked answers in {len(found)} buckets"


def _adapters(facts: _Facts) -> str:
    return ", ".join(facts.plan.adapters)


def _never(_: _Facts) -> bool:
    return False


def _ran_on(facts: _Facts) -> str:
    gpu = _text(facts.declared.get("gpu"))
    if gpu:
        number = facts.declared.get("gpu_count")
        return gpu if number is None else f"{number} × {gpu}"
    return "CPU" if facts.declared.get("device") == "cpu" else ""


_ITEMS: Final = (
    _Item("model", "base", declared=_field("model"), tells=("models",)),
    _Item("model", "adapters", tells=("adapters",), declared=_adapters, applies=_never),
    _Item("model", "tokenizer", ("tokenizer",), declared=lambda f: f.plan.tokenizer),
    _Item("model", "hash", ("model_hash", "hash", "sha256")),
    _Item("model", "revision", ("model_revision", "revision"), ("revision",)),
    _Item("quantisation", "weights", declared=_part("weights"), tells=("weights",)),
    _Item("quantisation", "activations", declared=_part("activations"), tells=("activations",)),
    _Item("quantisation", "KV cache", declared=_part("kv_cache"), tells=("kv_cache",)),
    _Item("quantisation", "bits per weight", declared=_bits, tells=("weight_bits",)),
    _Item("quantisation", "method", ("method", "tool"), ("method",), _precision("method"), _quantised),
    _Item("quantisation", "group size", ("group_size",), ("group_size",), _precision("group_size"), _grouped),
    _Item("quantisation", "scale granularity", ("scale_granularity", "scales"), applies=_quantised),
    _Item("quantisation", "calibration data", ("calibration_set", "calibration"), applies=_calibrated),
    _Item("runtime", "name", declared=_field("runtime")),
    _Item("runtime", "version", ("runtime_version", "version"), ("version",)),
    _Item("runtime", "start arguments", ("start_arguments", "arguments", "args", "engine_build"), ("server_args",)),
    _Item("system", "hardware", ("gpu", "cpu"), ("gpus",), _ran_on),
    _Item("system", "driver", ("driver", "driver_version"), ("driver",), applies=_on_gpu),
    _Item("system", "CUDA", ("cuda", "cuda_version", "rocm"), ("cuda", "cuda_version"), applies=_on_gpu),
    _Item("system", "NCCL", ("nccl", "nccl_version"), applies=_several_gpus),
    _Item("system", "parallelism", ("tensor_parallel", "parallelism"), ("tensor_parallel", "tp_size"), applies=_on_gpu),
    _Item(
        "system",
        "memory limit",
        ("memory_limit", "gpu_memory_utilization"),
        ("gpu_memory_utilization", "mem_fraction_static"),
        applies=_on_gpu,
    ),
    _Item("system", "image", ("image", "image_digest")),
    _Item("kernels", "profile", ("kernel_profile", "kernels"), ("attention_backend",), applies=_on_gpu),
    _Item("kernels", "fallbacks", ("kernel_fallbacks", "fallbacks"), applies=_on_gpu),
    _Item("kernels", "known bad shapes", ("bad_shapes", "known_bad_shapes"), applies=_on_gpu),
    _Item("KV and cache", "block size", ("kv_block_size", "block_size"), ("block_size", "page_size"), applies=_on_gpu),
    _Item("KV and cache", "prefix cache", ("prefix_cache",), ("enable_prefix_caching",)),
    _Item("KV and cache", "eviction", ("kv_eviction", "eviction"), ("radix_eviction_policy",)),
    _Item("KV and cache", "isolation", ("kv_isolation", "isolation")),
    _Item("evaluation", "buckets with evidence", declared=_evaluated, applies=lambda f: f.plan.evaluated is not None),
    _Item("evaluation", "guards", declared=lambda f: ", ".join(f.plan.guards), applies=_candidate),
    _Item("evaluation", "offline evaluation", ("evaluation", "eval_report"), applies=_candidate),
    _Item("rollback", "route back", declared=lambda f: f.plan.back_to, applies=_candidate),
    _Item("rollback", "stages", declared=lambda f: f.plan.stages, applies=_candidate),
    _Item("rollback", "incident samples", declared=lambda f: f.plan.samples, applies=_candidate),
)
