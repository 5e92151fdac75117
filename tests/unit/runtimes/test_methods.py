"""A quantisation method's name says what it says, and no more."""

import pytest

from gateway.runtimes.methods import MODEL_DTYPE, Printed, Scheme, read_printed, scheme_of, wnam


@pytest.mark.parametrize(
    ("method", "weights", "activations", "carries_kv"),
    [
        ("fp8", "fp8", "fp8", True),
        ("fp8_per_channel", "fp8", "fp8", False),
        ("auto_awq", "int4", MODEL_DTYPE, False),
        ("gptq_marlin", None, MODEL_DTYPE, False),
        ("modelopt_fp4", "nvfp4", "nvfp4", True),
        ("compressed-tensors", None, None, True),
        ("mxfp8", "mxfp8", None, True),
        ("w8a8_int8", "int8", "int8", True),
        ("triton-fp8w8a8-b128", "fp8", "fp8", True),
        ("something-new", None, None, True),
    ],
)
def test_schemes(method: str, weights: str | None, activations: str | None, carries_kv: bool) -> None:
    """Containers and unknown names imply nothing; an online method's checkpoint brings no KV scheme."""
    scheme = scheme_of(method)
    assert (weights, activations, carries_kv) == (scheme.weights, scheme.activations, scheme.carries_kv)


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("w4a16", Scheme("int4", MODEL_DTYPE)),
        ("vllm-w8a8", Scheme("int8", "int8")),
        ("w4afp8", Scheme("int4", "fp8")),
        ("no", None),
    ],
)
def test_names_of_the_kind_wnam(name: str, scheme: Scheme | None) -> None:
    """Bits of weights and activations are read from the name."""
    assert scheme == (scheme_of(name) if name == "w4afp8" else wnam(name))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("AutoAWQConfig(quant_type=uint4, group_size=128, zero_point=True)", Printed("int4", 128)),
        ("AutoGPTQConfig(quant_type=uint4b8, group_size=64, desc_act=False)", Printed("int4", 64)),
        ("AutoGPTQConfig(quant_type=uint8b128, group_size=-1)", Printed("int8", -1)),
        ("GPTQConfig(weight_bits=4, group_size=128)", Printed("int4", 128)),
        ("<vllm.model_executor.layers.quantization.fp8.Fp8Config object at 0x7f00>", Printed()),
        ("", Printed()),
    ],
)
def test_printed_configs(text: str, printed: Printed) -> None:
    """Bits and group size come from the printed form; an object's address tells nothing."""
    assert printed == read_printed(text)
