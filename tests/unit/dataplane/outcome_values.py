"""Outcomes for tests: every field has a plausible value, any may be given, those of the kind among them."""

from typing import Any

import msgspec

from gateway.model.outcome import Kind, Outcome, Packed

_DEFAULTS: dict[str, Any] = {
    "at": 1.7e9,
    "generation": 1,
    "api": "chat",
    "result": "ok",
    "status": 200,
    "queue_s": 0.0,
    "total_s": 0.1,
    "capture": None,
}
_BY_TYPE: dict[Any, Any] = {str: "", int: 0, float: -1.0, bool: False}


def make_outcome(**given: Any) -> Outcome:
    kind = Kind(**{field.name: _value(field) for field in msgspec.structs.fields(Kind)})
    rest = {field.name: _value(field) for field in msgspec.structs.fields(Outcome) if field.name != "kind"}
    return with_fields(Outcome(kind, **rest), **given)


def with_fields(outcome: Outcome, **fields: Any) -> Outcome:
    """The outcome with other values, its kind's among them."""
    of_kind = {name: fields.pop(name) for name in Kind.__struct_fields__ if name in fields}
    kind = msgspec.structs.replace(outcome.kind, **of_kind) if of_kind else outcome.kind
    return msgspec.structs.replace(outcome, kind=kind, **fields)


def opened(packed: Packed) -> Outcome:
    """As control reads what a worker sends."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(packed), type=Outcome)


def _value(field: Any) -> Any:
    return _DEFAULTS.get(field.name, _BY_TYPE.get(field.type, ()))
