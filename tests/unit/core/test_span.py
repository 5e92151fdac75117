"""Moments as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.span import read_moment

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("24h", NOW - 86_400),
        ("90m", NOW - 5400),
        ("1d12h", NOW - 129_600),
        ("1.5h", NOW - 5400),
        ("2w", NOW - 1_209_600),
        ("1699999999.5", 1699999999.5),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("2023-11-14", 1_699_920_000.0),
        (" 24h ", NOW - 86_400),
    ],
)
def test_durations_moments_and_seconds(text, moment):
    """A duration is that long ago; a moment without a zone is UTC."""
    assert read_moment(text, NOW) == moment


@given(st.text(max_size=12))
def test_anything_else_is_refused_with_examples(text):
    """No text crashes it or becomes a time by accident."""
    try:
        assert isinstance(read_moment(text, NOW), float)
    except ValueError as error:
        assert "24h" in str(error)


@pytest.mark.parametrize("text", ["", "yesterday", "24", "nan", "inf", "-5m", "5 parsecs"])
def test_near_misses(text):
    """A bare number is seconds since the epoch, as the API gives them; the rest is no time."""
    if text == "24":
        assert read_moment(text, NOW) == 24.0
    else:
        with pytest.raises(ValueError, match="is no time"):
            read_moment(text, NOW)
