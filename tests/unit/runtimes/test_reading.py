"""The shared readings are tolerant: anything that is not as expected reads as nothing."""

from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtimes.adapter import Answer, Answers, HealthState
from gateway.runtimes.attestation import Confidence
from gateway.runtimes.reading import (
    MODELS_PATH,
    as_int,
    as_text,
    attest_models,
    health_by_status,
    no_load,
    read_json,
    read_object,
    served_models,
    within,
)


@pytest.mark.parametrize(
    ("answer", "state", "word"),
    [
        (Answer(200), HealthState.READY, ""),
        (Answer(204), HealthState.READY, ""),
        (Answer(0, error="connection refused"), HealthState.UNHEALTHY, "connection refused"),
        (Answer(0), HealthState.UNHEALTHY, "no answer"),
        (Answer(401), HealthState.UNHEALTHY, "credentials"),
        (Answer(404), HealthState.UNHEALTHY, "runtime"),
        (Answer(503, b'{"error":{"message":"dead"}}'), HealthState.UNHEALTHY, "dead"),
        (Answer(500, b"x" * 5000), HealthState.UNHEALTHY, "HTTP 500"),
        (None, HealthState.UNHEALTHY, "not probed"),
    ],
)
def test_health_by_status(answer: Answer | None, state: HealthState, word: str) -> None:
    """200 is ready; anything else is not, and the reason is short and names the cause."""
    health = health_by_status(answer)
    assert health.state is state
    assert health.ready is (state is HealthState.READY)
    assert word in health.reason
    assert len(health.reason) < 200


def test_models_and_adapters_are_told_apart(answers: Callable[..., Answers]) -> None:
    """An entry with a parent is an adapter; the context is the smallest of the base models."""
    page = {
        "data": [
            {"id": "m", "root": "/models/m", "parent": None, "max_model_len": 4096},
            {"id": "sql", "root": "/adapters/sql", "parent": "m", "max_model_len": None},
            {"id": 5},
            "junk",
        ]
    }
    found = attest_models("vllm", answers({MODELS_PATH: page}), lists_adapters=True)
    assert [model.name for model in found.models] == ["m"]
    assert [(adapter.name, adapter.parent) for adapter in found.adapters] == [("sql", "m")]
    assert found.context_length == 4096
    assert found.models_listed
    assert found.adapters_listed


def test_an_empty_or_missing_list_proves_nothing(answers: Callable[..., Answers]) -> None:
    """A runtime that lists nothing is not thereby known to serve nothing."""
    for pages in ({MODELS_PATH: {"object": "list", "data": []}}, {MODELS_PATH: 500}, {}):
        found = attest_models("x", answers(pages), lists_adapters=True)
        assert (found.models, found.models_listed, found.adapters_listed) == ((), False, False)


def test_a_name_is_only_a_hint(answers: Callable[..., Answers]) -> None:
    """A format in a model's path is inferred, never reported; two paths that differ tell nothing."""
    one = attest_models("x", answers({MODELS_PATH: {"data": [{"id": "m", "root": "org/Model-AWQ"}]}}))
    assert (one.weights.value, one.weights.confidence) == ("int4", Confidence.INFERRED)
    two = attest_models("x", answers({MODELS_PATH: {"data": [{"id": "a-AWQ"}, {"id": "b-FP8"}]}}))
    assert not two.weights.known


@given(st.none() | st.binary(max_size=100) | st.just(b"[1]") | st.just(b'{"data":{}}') | st.just(b'{"data":[null]}'))
def test_broken_bodies_read_as_nothing(body: bytes | None) -> None:
    """No body of any kind raises."""
    assert served_models(body) == ()
    assert isinstance(read_object(body), dict)
    read_json(body)


def test_nested_values() -> None:
    """A missing step gives nothing."""
    value = read_object(orjson.dumps({"a": {"b": 1}, "c": 2}))
    assert within(value, "a", "b") == 1
    assert within(value, "c", "b") is None
    assert within(value, "x", "b") is None


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5), ("5", 5), ("-1", -1), (5.0, 5), (5.5, None), ("None", None), (True, None), (None, None), ("x", None)],
)
def test_as_int(value: object, number: int | None) -> None:
    """Numbers come as numbers or as text in labels; a truth value is none."""
    assert number == as_int(value)


@pytest.mark.parametrize(("value", "text"), [("a", "a"), ("", None), ("None", None), ("null", None), (3, None)])
def test_as_text(value: object, text: str | None) -> None:
    """A printed None is no text."""
    assert text == as_text(value)


def test_nothing_told() -> None:
    """A runtime without load gives none."""
    assert no_load({}, 1.0) is None
