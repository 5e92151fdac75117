"""How often something may happen."""

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.policy.numbers import written
from gateway.policy.schema.frequency import Frequency

ADAPTER: TypeAdapter[float] = TypeAdapter(Frequency)


@pytest.mark.parametrize(
    ("text", "per_year"), [("1 per year", 1.0), ("2/month", 24.0), ("0.5 per day", 182.625), (3.0, 3.0)]
)
def test_it_is_times_a_year(text: object, per_year: float) -> None:
    """In any unit, and in its normal form."""
    assert ADAPTER.validate_python(text) == per_year


@pytest.mark.parametrize("text", ["often", "0 per year", 3, written(0.5, "0.5"), None, "1e3 per year"])
def test_anything_else_is_refused(text: object) -> None:
    """A number that a person wrote has no unit."""
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(text)
