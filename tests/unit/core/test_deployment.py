"""What must be written down with a deployment, and what of it is missing."""

from gateway.core.deployment import Entry, Plan, State, entries, missing, plan_of
from gateway.model.precision import Precision
from gateway.model.proving import Rollout, Samples, Stage
from gateway.model.table import Classifier, Model, Pool, Settings, Table

DECLARED = {
    "pool": "int4",
    "model": "m",
    "runtime": "vllm",
    "precision": {"weights": "int4", "activations": "bf16", "kv_cache": "bf16", "method": "awq", "group_size": 128},
    "device": None,
    "gpu": "A100",
}


def by_name(found: list[Entry]) -> dict[str, Entry]:
    return {f"{entry.group} {entry.name}": entry for entry in found}


def record(**precision):
    return DECLARED | {"precision": DECLARED["precision"] | precision}


def test_a_bare_declaration_misses_what_explains_its_numbers():
    """Hash, version, driver, calibration: without them a number cannot be reproduced."""
    names = {f"{entry.group} {entry.name}" for entry in missing(entries(DECLARED, None, Plan()))}
    assert {"model hash", "runtime version", "system driver", "system CUDA", "quantisation calibration data"} <= names
    assert not {"quantisation method", "quantisation group size", "model base", "runtime name"} & names


def test_the_runtimes_word_fills_gaps_and_stands_beside_the_policys():
    """Attested values count as known; where both speak, both are shown."""
    attested = {
        "version": "0.25.1",
        "weights": {"value": "int4", "confidence": "reported"},
        "kv_cache": {"value": "", "confidence": "unknown"},
        "gpus": ("A100", "A100"),
        "tensor_parallel": 2,
        "weight_bits": 4.25,
        "device": {"block_size": "16"},
    }
    found = by_name(entries(DECLARED, attested, Plan()))
    assert found["runtime version"].state is State.KNOWN
    assert (found["quantisation weights"].declared, found["quantisation weights"].attested) == ("int4", "int4")
    assert found["quantisation KV cache"].attested == ""
    assert found["quantisation bits per weight"].attested == "4.25"
    assert found["KV and cache block size"].attested == "16"
    assert found["system hardware"].attested == "A100, A100"
    assert found["system NCCL"].state is State.MISSING  # two cards talk


def test_settings_that_runtimes_tell_are_not_missing():
    """By the names that their adapters give them; a driver that is another than declared stands beside it."""
    settings = {"driver": "580.95", "cuda": "13.0", "page_size": "32", "mem_fraction_static": "0.9"}
    device = settings | {"enable_prefix_caching": "False", "radix_eviction_policy": "lru"}
    found = by_name(entries(DECLARED | {"record.driver": "570.1"}, {"device": device}, Plan()))
    assert (found["system driver"].declared, found["system driver"].attested) == ("570.1", "580.95")
    told = ("system CUDA", "system memory limit", "KV and cache block size", "KV and cache prefix cache")
    assert [found[name].attested for name in told] == ["13.0", "0.9", "32", "False"]
    assert found["KV and cache eviction"].attested == "lru"


def test_the_number_of_gpus_is_on_record():
    """As declared with the hardware; more than one talk to each other."""
    found = by_name(entries(DECLARED | {"gpu": "H100", "gpu_count": 2}, None, Plan()))
    assert found["system hardware"].declared == "2 × H100"
    assert found["system NCCL"].state is State.MISSING
    found = by_name(entries(DECLARED | {"gpu": "H100", "gpu_count": 1}, None, Plan()))
    assert found["system NCCL"].state is State.NOT_APPLICABLE


def test_keys_of_the_policys_record_count_under_their_usual_names():
    """Any of the spellings; the entry says which one to write."""
    declared = DECLARED | {"record.cuda_version": "13.0", "record.sha256": "abc"}
    found = by_name(entries(declared, None, Plan()))
    assert (found["system CUDA"].declared, found["model hash"].declared) == ("13.0", "abc")
    assert found["system image"].write == "image"


def test_nothing_is_asked_that_does_not_apply():
    """No group size for BF16, no calibration for rounding to nearest, no driver for a CPU."""
    full = record(weights="bf16", method=None, group_size=None)
    found = by_name(entries(full, None, Plan(is_baseline=True)))
    for name in ("group size", "scale granularity", "calibration data", "method"):
        assert found[f"quantisation {name}"].state is State.NOT_APPLICABLE
    assert found["rollback route back"].state is State.NOT_APPLICABLE
    gguf = record(weights="q4_0", group_size=None) | {"device": "cpu", "gpu": None}
    found = by_name(entries(gguf, None, Plan()))
    for name in (
        "quantisation group size",
        "quantisation calibration data",
        "system driver",
        "system NCCL",
        "kernels profile",
    ):
        assert found[name].state is State.NOT_APPLICABLE
    assert found["system hardware"].declared == "CPU"


def test_evidence_and_the_way_back_are_part_of_the_record():
    """Where somebody looked and found nothing it is missing; where nobody looked it is left out."""
    found = by_name(entries(DECLARED, None, Plan(evaluated={}, back_to="bf16")))
    assert found["evaluation buckets with evidence"].state is State.MISSING
    assert found["rollback route back"].declared == "bf16"
    found = by_name(entries(DECLARED, None, Plan(evaluated={"a": 30, "b": 1200})))
    assert found["evaluation buckets with evidence"].declared == "1,230 checked answers in 2 buckets"
    assert by_name(entries(DECLARED, None, Plan()))["evaluation buckets with evidence"].state is State.NOT_APPLICABLE


def test_the_plan_is_read_off_the_policy():
    """Rollouts give stages, guards and the way back; without one the model's baseline is the way back."""
    stages = (Stage("shadow", 500, 0.0, 0, 0, 1.0), Stage("weight", 2500, 0.0, 0, 0, 1.0))
    rollout = Rollout("r", "r", "m", "int4", "fp8", lambda _: True, "always", stages, ("errors", "json"))
    pools = {name: Pool(name, "m", "vllm", Precision(), ()) for name in ("bf16", "fp8", "int4")}
    table = Table(
        1, "d", {"m": Model("m", tokenizer=("tiktoken", "cl100k_base"), baseline="bf16")}, pools, {}, {}, None, {},
        Classifier((), "x", (), "chat", frozenset(), None, None, lambda _, __: "none", (), 1), (), (), Settings(),
        rollouts=(rollout,),
    )  # fmt: skip
    plan = plan_of(table, Samples(keep="incidents"), "int4", {"chat": 3})
    assert plan == Plan(
        "tiktoken cl100k_base",
        (),
        False,
        "fp8",
        "r: shadow 5 % → weight 25 %",
        ("errors", "json"),
        "kept: incidents",
        {"chat": 3},
    )
    assert plan_of(table, Samples(), "fp8", None).back_to == "bf16"
    baseline = plan_of(table, Samples(), "bf16", None)
    assert (baseline.is_baseline, baseline.back_to, baseline.samples) == (True, "", "")
