"""Families of number formats."""

import pytest

from gateway.policy.formats import family, quantised


@pytest.mark.parametrize(
    ("word", "general"),
    [
        ("q8_0", "int8"),
        ("iq4_nl", "int4"),
        ("tq1_0", "int1"),
        ("fp8_e5m2", "fp8"),
        ("nvfp4", "fp4"),
        ("bf16", "bf16"),
        ("int4", "int4"),
    ],
)
def test_an_exact_format_belongs_to_a_general_one(word: str, general: str) -> None:
    """General names belong to themselves."""
    assert family(word) == general
    assert family(general) == general


def test_only_plain_floats_are_not_quantised() -> None:
    """Everything else carries scales."""
    assert not quantised("bf16")
    assert quantised("fp8")
