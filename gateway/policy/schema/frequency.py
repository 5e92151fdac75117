"""How often something may happen: ``1 per year``. Pure; called by pydantic."""

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from gateway.policy.numbers import WrittenFloat, as_written
from gateway.policy.schema.shown import frequency_shown
from gateway.policy.schema.values import refuse

_PER = {"day": 365.25, "week": 52.1775, "month": 12.0, "year": 1.0}
_FREQUENCY = re.compile(r"(\d+(?:\.\d+)?)\s*(?:per|/)\s*(day|week|month|year)")


def _frequency(value: object) -> float:
    if isinstance(value, str) and (match := _FREQUENCY.fullmatch(value.strip())):
        number = float(match[1]) * _PER[match[2]]
    elif isinstance(value, float) and not isinstance(value, WrittenFloat):  # the normal form
        number = value
    else:
        likely = f"did you mean {as_written(value)} per year?" if isinstance(value, int | float) else ""
        refuse("a frequency such as '1 per year' expected", likely)
    if not 0 < number <= 100_000:
        refuse("a frequency above 0 expected", "the engine divides it over all series; 1 per year is the default")
    return number


Frequency = Annotated[
    float,
    BeforeValidator(_frequency),
    PlainSerializer(frequency_shown),
    WithJsonSchema({"type": ["string", "number"], "description": "1 per year"}),
]
