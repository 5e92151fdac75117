"""Distributions of latencies and lengths."""

from statistics import median

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.latency import Distribution

UNIFORM = st.floats(0, 1, exclude_max=True)


@given(UNIFORM)
def test_constant_is_constant(uniform: float) -> None:
    """A constant does not depend on the draw."""
    assert Distribution(constant=0.25).sample(uniform) == 0.25


@given(UNIFORM, UNIFORM)
def test_sampling_is_monotonic(first: float, second: float) -> None:
    """The inverse of a distribution never falls, whatever its shape."""
    low, high = sorted((first, second))
    for shape in (Distribution(median=0.1, sigma=0.7), Distribution(quantiles={"0.1": 0.01, "0.5": 0.05, "0.99": 2.0})):
        assert 0 <= shape.sample(low) <= shape.sample(high)


def test_lognormal_has_its_median_and_spread() -> None:
    """Half of the samples lie below the median, and one sigma is a factor of e^sigma."""
    shape = Distribution(median=0.2, sigma=0.5)
    samples = [shape.sample((number + 0.5) / 1000) for number in range(1000)]
    assert median(samples) == pytest.approx(0.2, rel=0.01)
    assert shape.sample(0.8413447) / 0.2 == pytest.approx(1.6487, rel=0.001)


def test_quantiles_are_met_and_joined() -> None:
    """Given quantiles come out as given, between them it is linear, outside the nearest holds."""
    shape = Distribution(quantiles={"0.5": 1.0, "0.9": 2.0})
    assert [shape.sample(at) for at in (0.0, 0.5, 0.7, 0.9, 0.99)] == pytest.approx([1.0, 1.0, 1.5, 2.0, 2.0])


@pytest.mark.parametrize(
    "given_shape",
    [
        {},
        {"constant": 1, "median": 2},
        {"constant": -1},
        {"median": 0},
        {"quantiles": {"1.5": 1}},
        {"quantiles": {"0.1": 2, "0.9": 1}},
        {"median": 1, "sigma": -1},
        {"mean": 3},
    ],
)
def test_nonsense_is_refused(given_shape: dict[str, object]) -> None:
    """What is no distribution is said when it is read."""
    with pytest.raises((ValueError, msgspec.ValidationError)):
        msgspec.convert(given_shape, Distribution)
