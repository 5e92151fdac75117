"""Readings that several runtimes share: JSON bodies, plain health by status, the list of served models.

It owns tolerance: a body that is not what was expected reads as nothing. Runtime-specific knowledge stays in the
runtime's own module. Pure.
"""

from collections.abc import Mapping
from typing import cast

import orjson

from gateway.runtimes.adapter import READY, Answer, Answers, Health, HealthState, Load
from gateway.runtimes.attestation import Attestation, Observation, ServedModel, inferred, unknown
from gateway.runtimes.faults import read_fault
from gateway.runtimes.formats import hinted

MODELS_PATH = "/v1/models"
_REASON_CHARS = 160


def answered(answers: Answers, path: str) -> bytes | None:
    """The body of a 200 answer at ``path``."""
    answer = answers.get(path)
    return answer.body if answer is not None and answer.status == 200 else None


def read_object(body: bytes | None) -> Mapping[str, object]:
    """A JSON object; anything else reads as an empty one."""
    value = read_json(body)
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def read_json(body: bytes | None) -> object:
    """Any JSON value; ``None`` where the body is not JSON."""
    if body is None:
        return None
    try:
        return cast(object, orjson.loads(body))
    except orjson.JSONDecodeError:
        return None


def within(value: Mapping[str, object], *path: str) -> object:
    """The value under nested keys; ``None`` where a step is missing."""
    here: object = value
    for key in path:
        if not isinstance(here, dict):
            return None
        here = here.get(key)
    return here


def as_told(value: object) -> str | None:
    """A setting as a person would read it; None where the runtime does not tell."""
    return None if value is None or value == "None" or isinstance(value, dict | list) else str(value)


def as_text(value: object) -> str | None:
    """A non-empty string; ``None`` for anything else, the printed ``None`` and ``null`` included."""
    if not isinstance(value, str) or not value or value.lower() in ("none", "null"):
        return None
    return value


def as_int(value: object) -> int | None:
    """A whole number, also in text as metrics' labels hold it."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return int(value)
    return None


def health_by_status(answer: Answer | None) -> Health:
    """Health of a server that answers 200 when it can serve."""
    if answer is None:
        return Health(HealthState.UNHEALTHY, "not probed")
    if answer.status == 0:
        return Health(HealthState.UNHEALTHY, answer.error or "no answer")
    if 200 <= answer.status < 300:
        return READY
    if answer.status in (401, 403):
        return Health(HealthState.UNHEALTHY, f"HTTP {answer.status}: the pool refuses the gateway's credentials")
    if answer.status == 404:
        return Health(HealthState.UNHEALTHY, "HTTP 404: no such path; is this the runtime that the policy names?")
    message = read_fault(answer.body).message[:_REASON_CHARS]
    return Health(HealthState.UNHEALTHY, f"HTTP {answer.status}: {message}" if message else f"HTTP {answer.status}")


def served_models(body: bytes | None) -> tuple[ServedModel, ...]:
    """The entries of ``/v1/models``, LoRA adapters (those with a parent) included."""
    entries = within(read_object(body), "data")
    models = []
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            continue
        aliases = entry.get("aliases")
        models.append(
            ServedModel(
                name=entry["id"],
                root=as_text(entry.get("root")),
                parent=as_text(entry.get("parent")),
                context_length=as_int(entry.get("max_model_len")),
                aliases=tuple(alias for alias in aliases if isinstance(alias, str))
                if isinstance(aliases, list)
                else (),
            )
        )
    return tuple(models)


def attest_models(runtime: str, answers: Answers, *, lists_adapters: bool = False) -> Attestation:
    """What ``/v1/models`` alone attests: names, adapters, context length, and a weight format where the name hints at
    one.
    """
    body = answered(answers, MODELS_PATH)
    entries = served_models(body)
    bases = tuple(entry for entry in entries if entry.parent is None)
    lengths = [entry.context_length for entry in bases if entry.context_length is not None]
    return Attestation(
        runtime,
        weights=hinted_weights(bases),
        context_length=min(lengths) if lengths else None,
        models=bases,
        adapters=tuple(entry for entry in entries if entry.parent is not None),
        models_listed=bool(entries),
        adapters_listed=lists_adapters and bool(entries),
    )


def hinted_weights(models: tuple[ServedModel, ...]) -> Observation:
    """The weight format that the models' paths or names hint at, if they hint at one and the same."""
    hints = {hint for model in models for name in (model.root or model.name,) if (hint := hinted(name)) is not None}
    if len(hints) != 1:
        return unknown("the runtime does not report it")
    return inferred(hints.pop(), "the model's name")


def no_load(answers: Answers, at: float) -> Load | None:
    """For a runtime that reports no load."""
    del answers, at
    return None
