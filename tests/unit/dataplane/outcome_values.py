"""Outcomes for tests: every field has a plausible value, any may be given."""

from typing import Any

import msgspec

from gateway.model.outcome import Outcome

_DEFAULTS: dict[str, Any] = {
    "at": 1.7e9,
    "generation": 1,
    "api": "chat",
    "result": "ok",
    "status": 200,
    "queue_s": 0.0,
    "total_s": 0.1,
}
_BY_TYPE: dict[Any, Any] = {str: "", int: 0, float: -1.0, bool: False}


def make_outcome(**given: Any) -> Outcome:
    values = {}
    for field in msgspec.structs.fields(Outcome):
        fallback = _BY_TYPE.get(field.type, ())
        values[field.name] = given.get(field.name, _DEFAULTS.get(field.name, fallback))
    values["capture"] = given.get("capture")
    return Outcome(**values)
