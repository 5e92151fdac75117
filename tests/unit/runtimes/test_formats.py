"""Formats have one spelling, general names agree with exact ones, and hints are read from names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtimes.formats import agree, bits, canonical, general, hinted


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch.bfloat16", "bf16"),
        ("BF16", "bf16"),
        ("F16", "fp16"),
        ("all F32", "fp32"),
        ("half", "fp16"),
        ("Q8_0", "q8_0"),
        ("Q4_K - Medium", "q4_k_m"),
        ("Q3_K - Small", "q3_k_s"),
        ("IQ4_NL - 4.5 bpw", "iq4_nl"),
        ("(guessed) Q4_0", "q4_0"),
        ("mostly Q4_1", "q4_1"),
        ("torch.float8_e4m3fn", "fp8_e4m3"),
        ("fp8_e5m2", "fp8_e5m2"),
        ("int8kv", "int8"),
        ("fp8kv_sph", "fp8"),
        ("uint4", "int4"),
        ("NVFP4", "nvfp4"),
    ],
)
def test_one_spelling(text: str, name: str) -> None:
    """Every spelling that a runtime uses maps to the policy's word."""
    assert name == canonical(text)


@pytest.mark.parametrize(
    ("declared", "observed", "same"),
    [
        ("bf16", "torch.bfloat16", True),
        ("bf16", "fp16", False),
        ("fp8", "fp8_e4m3", True),
        ("fp8_e5m2", "fp8", True),
        ("fp8_e4m3", "fp8_e5m2", False),
        ("int8", "Q8_0", True),
        ("q8_0", "int8", True),
        ("int4", "q4_k_m", True),
        ("q4_0", "q4_1", False),
        ("int4", "q8_0", False),
        ("int8", "fp8", False),
        ("int8", "int8_per_token_head", True),
        ("fp8", "int8_per_token_head", False),
        ("fp4", "nvfp4", True),
        ("nvfp4", "mxfp4", False),
        ("int4", "iq4_nl", True),
    ],
)
def test_agreement(declared: str, observed: str, same: bool) -> None:
    """A general name agrees with what is under it; two exact formats agree only if equal; order does not matter."""
    assert agree(declared, observed) is same
    assert agree(observed, declared) is same


@given(st.text(max_size=30))
def test_canonical_is_stable(text: str) -> None:
    """A spelling of a format agrees with itself, and taking the general name twice changes nothing."""
    name = canonical(text)
    assert agree(text, text)
    assert general(general(name)) == general(name)


@pytest.mark.parametrize(
    ("name", "width"),
    [("bf16", 16), ("fp8_e4m3", 8), ("q8_0", 8), ("int4", 4), ("nvfp4", 4), ("iq4_nl", 4), ("auto", None)],
)
def test_bits(name: str, width: int | None) -> None:
    """The nominal width stands in the name, or is not known."""
    assert width == bits(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("models/smollm2-bf16", "bf16"),
        ("org/Qwen2.5-32B-Instruct-AWQ", "int4"),
        ("org/Llama-3.1-8B-Instruct-FP8-dynamic", "fp8"),
        ("Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "int4"),
        ("x.w8a8", "int8"),
        ("SmolLM2-135M-Instruct.Q4_K_M.gguf", "q4_k_m"),
        ("DeepSeek-R1-NVFP4", "nvfp4"),
        ("Qwen2.5-7B-Instruct-GPTQ-Int8", "int8"),
        ("gpt-oss-20b", None),
        ("/models/fp8/llama", None),
        ("awqua-model", None),
    ],
)
def test_hints(name: str, hint: str | None) -> None:
    """Whole words of the last path part hint at a format; other text does not."""
    assert hint == hinted(name)
