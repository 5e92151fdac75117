"""Numbers with the units that files need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gateway.policy.schema.frequency import Frequency
from gateway.policy.schema.shown import IN_WORDS
from gateway.policy.schema.values import Duration, read_duration

DURATION: TypeAdapter[float] = TypeAdapter(Duration)


@pytest.mark.parametrize(("seconds", "shown"), [(0.25, "0.25s"), (90.0, "90.0s"), (1e-05, "0.00001s"), (0.0, "0.0s")])
def test_a_duration_has_its_unit(seconds: float, shown: str) -> None:
    """For people; what is published has none."""
    assert DURATION.dump_python(seconds, context=IN_WORDS) == shown
    assert DURATION.dump_python(seconds) == seconds


@given(st.floats(0, 1e9))
def test_a_duration_reads_back(seconds: float) -> None:
    """To the last bit: a digest goes by it."""
    assert read_duration(DURATION.dump_python(seconds, context=IN_WORDS)) == seconds


@given(st.floats(1e-6, 1e5))
def test_a_frequency_reads_back(per_year: float) -> None:
    """The same of times a year."""
    adapter: TypeAdapter[float] = TypeAdapter(Frequency)
    assert adapter.validate_python(adapter.dump_python(per_year, context=IN_WORDS)) == per_year
