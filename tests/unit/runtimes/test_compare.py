"""What contradicts a declaration and what does not; doubt warns, a report quarantines, silence does neither."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.precision import Precision
from gateway.runtimes.attestation import Attestation, Confidence, Observation, ServedModel, inferred, reported, unknown
from gateway.runtimes.compare import Declaration, Mismatch, Verdict, compare, judge, kv_bits, reference_for

FULL = Attestation(
    "vllm", weights=reported("bf16", "x"), activations=reported("bf16", "x"), kv_cache=reported("bf16", "x")
)


UNTOLD = unknown()


def fields(found: tuple[Mismatch, ...]) -> list[str]:
    """The contradicted fields."""
    return [mismatch.field for mismatch in found]


def test_agreement_is_silent() -> None:
    """A truthful declaration contradicts nothing and is attested."""
    assert compare(Precision(), FULL) == ()
    assert judge(FULL, ()) is Verdict.ATTESTED


def test_each_part_is_compared_on_its_own() -> None:
    """Weights, activations and KV cache are told apart, in that order."""
    declared = Precision(weights="fp8", activations="fp8", kv_cache="fp8")
    assert fields(compare(declared, FULL)) == ["weights", "activations", "kv_cache"]


def test_reasons_name_both_sides() -> None:
    """A person reads what was said and what was seen, and from where."""
    (mismatch,) = compare(Precision(weights="fp8"), FULL)
    assert "fp8" in mismatch.reason
    assert "bf16" in mismatch.reason
    assert (mismatch.declared, mismatch.observed) == ("fp8", "bf16")


@pytest.mark.parametrize(
    ("weights", "kv", "declared", "verdict"),
    [
        (reported("bf16", ""), reported("bf16", ""), "fp8", Verdict.MISMATCH),
        (inferred("bf16", ""), reported("bf16", ""), "fp8", Verdict.SUSPECT),
        (unknown(), unknown(), "fp8", Verdict.UNATTESTED),
        (reported("fp8", ""), unknown(), "fp8", Verdict.PARTIAL),
        (unknown(), reported("bf16", ""), "fp8", Verdict.PARTIAL),
        (inferred("fp8", ""), inferred("bf16", ""), "fp8", Verdict.ATTESTED),
    ],
)
def test_verdicts(weights: Observation, kv: Observation, declared: str, verdict: Verdict) -> None:
    """A report against the policy is a mismatch, an inference a suspicion, silence unattested."""
    observed = Attestation("x", weights=weights, kv_cache=kv)
    assert judge(observed, compare(Precision(weights=declared), observed)) is verdict


@given(st.sampled_from(["bf16", "fp8", "int4", "q8_0"]), st.sampled_from(["bf16", "fp8", "int8"]))
def test_silence_never_contradicts(weights: str, kv: str) -> None:
    """An endpoint that tells nothing contradicts no declaration."""
    assert (
        compare(Declaration(Precision(weights=weights, kv_cache=kv), ("m",), ("a",), 9999, "H100"), Attestation("x"))
        == ()
    )


def test_methods_exclude_each_other_only_where_they_do() -> None:
    """AWQ is not GPTQ; a container may hold either."""
    observed = msgspec.structs.replace(FULL, method="gptq_marlin")
    assert fields(compare(Precision(method="awq"), observed)) == ["method"]
    for method in ("auto_awq", "compressed-tensors", None):
        assert compare(Precision(method="awq"), msgspec.structs.replace(FULL, method=method)) == ()


def test_group_sizes() -> None:
    """Two known sizes that differ are a contradiction."""
    observed = msgspec.structs.replace(FULL, group_size=64)
    assert fields(compare(Precision(group_size=128), observed)) == ["group_size"]
    assert compare(Precision(group_size=64), observed) == ()


def test_measured_bits_catch_a_lying_label() -> None:
    """A file too small for its format contradicts it; a larger one does not."""
    small = Attestation("llama.cpp", weights=reported("q8_0", ""), weight_bits=4.6)
    assert fields(compare(Precision(weights="q8_0"), small)) == ["weights"]
    large = msgspec.structs.replace(small, weight_bits=9.5)
    assert compare(Precision(weights="q8_0"), large) == ()


def sized(per_token: float, parallel: int | None = 1, kv: Observation = UNTOLD) -> Attestation:
    """An endpoint whose KV cache takes so many bytes per token."""
    return Attestation("vllm", kv_cache=kv, kv_bytes_per_token=per_token, tensor_parallel=parallel)


@pytest.mark.parametrize(
    ("per_token", "bits"), [(1000.0, 16), (500.0, 8), (530.0, 8), (250.0, 4), (281.0, 4), (750.0, None)]
)
def test_kv_bits_by_size(per_token: float, bits: int | None) -> None:
    """Half the bytes are 8 bits, a quarter 4, scales included; what fits no step tells nothing."""
    assert bits == kv_bits(sized(per_token), sized(1000.0))


def test_sizes_compare_only_at_equal_parallelism() -> None:
    """Two ranks share the heads, so half the bytes on twice the ranks is no quantisation."""
    assert kv_bits(sized(500.0, 2), sized(1000.0, 1)) is None
    assert kv_bits(sized(500.0, None), sized(1000.0, None)) is None


def test_a_size_contradicts_only_where_the_runtime_did_not_report() -> None:
    """What the runtime states outright is not overruled by arithmetic; what it left open is tested by it."""
    reference = sized(1000.0, kv=reported("bf16", ""))
    assert fields(compare(Precision(), sized(500.0), reference)) == ["kv_cache"]
    assert compare(Precision(kv_cache="fp8"), sized(500.0), reference) == ()
    assert compare(Precision(), sized(500.0, kv=reported("bf16", "")), reference) == ()


def test_a_reference_must_be_known() -> None:
    """Only a reported 16-bit KV cache of known size may serve as the reference."""
    good = sized(1000.0, kv=reported("bf16", ""))
    poor = (sized(1000.0), sized(1000.0, kv=inferred("bf16", "")), sized(1000.0, kv=reported("fp32", "")), FULL)
    assert reference_for((*poor, good)) is good
    assert reference_for(poor) is None


SERVED = Attestation(
    "vllm",
    models=(ServedModel("m", root="/models/m", aliases=("alias",)),),
    adapters=(ServedModel("sql", parent="m"), ServedModel("stray", parent="other")),
    models_listed=True,
    adapters_listed=True,
    context_length=8192,
    gpus=("NVIDIA H100 80GB HBM3",),
)


def test_names_must_be_served() -> None:
    """A name that requests will carry must be listed; an alias is, and so is an adapter that is a pool's only model."""
    assert compare(Declaration(Precision(), ("m", "alias")), SERVED) == ()
    assert compare(Declaration(Precision(), ("sql",)), SERVED) == ()
    (mismatch,) = compare(Declaration(Precision(), ("nope",)), SERVED)
    assert (mismatch.field, mismatch.confidence) == ("model", Confidence.REPORTED)
    assert "nope" in mismatch.reason


def test_adapters_must_be_loaded_on_this_base() -> None:
    """A missing adapter, or one of another base, is a contradiction."""
    assert compare(Declaration(Precision(), adapters=("sql",)), SERVED) == ()
    assert fields(compare(Declaration(Precision(), adapters=("gone", "stray")), SERVED)) == ["adapters", "adapters"]


def test_the_context_must_hold_what_the_policy_promises() -> None:
    """A shorter context contradicts; a longer one does not."""
    assert compare(Declaration(Precision(), context_window=8192), SERVED) == ()
    assert fields(compare(Declaration(Precision(), context_window=8193), SERVED)) == ["context_window"]


def test_another_card_only_warns() -> None:
    """GPU names have many spellings, so a difference is a suspicion."""
    (mismatch,) = compare(Declaration(Precision(), gpu="A100"), SERVED)
    assert (mismatch.field, mismatch.confidence) == ("gpu", Confidence.INFERRED)
    assert compare(Declaration(Precision(), gpu="H100 SXM"), SERVED) == ()
