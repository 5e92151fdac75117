"""Outcomes for tests: every field has a plausible value, any may be given, those of the kind among them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.core.batch import Kinds
from gateway.dataplane.outcomes import CAPTURE_BYTES, Ended, OutcomeBuffer
from gateway.model.outcome import Columns, Kind, Outcome

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


def ended(outcome: Outcome) -> Ended:
    """As a worker makes it."""
    values = msgspec.structs.asdict(outcome)
    kind, tried = outcome.kind, outcome.attempts
    own = tried[0] if len(tried) == 1 else None
    usual = own is not None and (own.pool, own.endpoint, own.status, own.failure) == (
        *(kind.pool, kind.endpoint, kind.status),
        "",
    )
    values["kind"] = msgspec.msgpack.encode(kind)
    values["attempts"] = None if usual else tried
    return Ended(
        **values, started_s=own.started_s if own and usual else 0.0, took_s=own.took_s if own and usual else 0.0
    )


def recorded(made: Ended) -> Outcome:
    """As it reaches control."""
    buffer = OutcomeBuffer()
    buffer.add(made)
    (outcome,) = opened(buffer.take()[0])
    return outcome


def batches(outcomes: Iterable[Outcome]) -> list[Columns]:
    """As a worker sends them: in batches of its size, none dropped."""
    made = list(outcomes)
    buffer = OutcomeBuffer(len(made), CAPTURE_BYTES)
    for outcome in made:
        buffer.add(ended(outcome))
    found = []
    while len(buffer) or not found:
        found.append(buffer.take()[0])
    return found


def columns(*outcomes: Outcome) -> Columns:
    """As one batch of a worker."""
    (batch,) = batches(outcomes)
    return batch


def sent(*outcomes: Outcome) -> bytes:
    """As one batch of a worker, on the wire."""
    return msgspec.msgpack.encode(columns(*outcomes))


def opened(batch: Columns) -> list[Outcome]:
    """As control reads what a worker sends."""
    return Kinds().batch([msgspec.msgpack.encode(batch)]).outcomes()


def _value(field: Any) -> Any:
    return _DEFAULTS.get(field.name, _BY_TYPE.get(field.type, ()))
