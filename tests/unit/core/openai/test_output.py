"""Structure, sampling, reserved length and stream usage, as requests spell them."""

from typing import Any

import pytest

from gateway.core.openai import output
from gateway.errors import ApiError
from gateway.model.enums import Structured
from gateway.model.facts import Sampling


@pytest.mark.parametrize(
    ("body", "structured"),
    [
        ({}, Structured.NONE),
        ({"response_format": None}, Structured.NONE),
        ({"response_format": {}}, Structured.NONE),
        ({"response_format": {"type": "text"}}, Structured.NONE),
        ({"response_format": {"type": "json_object"}}, Structured.JSON_OBJECT),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, Structured.JSON_SCHEMA),
        ({"response_format": {"type": "structural_tag"}}, Structured.GRAMMAR),
        ({"guided_json": {}}, Structured.JSON_SCHEMA),
        ({"json_schema": "{}"}, Structured.JSON_SCHEMA),
        ({"guided_choice": ["a"]}, Structured.GRAMMAR),
        ({"regex": "a+"}, Structured.GRAMMAR),
        ({"ebnf": "root ::= x"}, Structured.GRAMMAR),
        ({"grammar": "root ::= x"}, Structured.GRAMMAR),
        ({"grammar": None}, Structured.NONE),
        ({"structured_outputs": {"json": {}}}, Structured.JSON_SCHEMA),
        ({"structured_outputs": {"regex": "a"}}, Structured.GRAMMAR),
        ({"response_format": {"type": "text"}, "regex": "a"}, Structured.GRAMMAR),
    ],
)
def test_structure(body: dict[str, Any], structured: Structured) -> None:
    """Whatever field a runtime may act on is seen."""
    assert output.structured_of(body) is structured


@pytest.mark.parametrize(
    ("body", "sampling"),
    [
        ({}, Sampling()),
        ({"seed": 0}, Sampling(seed=True)),
        ({"seed": None, "n": None}, Sampling()),
        ({"temperature": 0}, Sampling(temperature=0.0)),
        ({"top_p": 0.1, "n": 3}, Sampling(top_p=0.1, n=3)),
        ({"logprobs": False}, Sampling()),
        ({"logprobs": True}, Sampling(logprobs=True)),
        ({"logprobs": 0}, Sampling(logprobs=True)),
        ({"top_logprobs": 2}, Sampling(logprobs=True)),
    ],
)
def test_sampling(body: dict[str, Any], sampling: Sampling) -> None:
    """Null is unset; a logprobs count of zero in completions still asks for them."""
    assert output.sampling_of(body) == sampling


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 0}, 0),
        ({"max_tokens": 5, "max_completion_tokens": 9}, 9),
        ({"max_tokens": 9, "max_completion_tokens": 5}, 9),
        ({"max_tokens": -1}, None),
    ],
)
def test_reserved(body: dict[str, Any], tokens: int | None) -> None:
    """Runtimes read different fields, so the larger counts; a negative value means open, never a smaller context."""
    assert output.reserved(body, "max_completion_tokens", "max_tokens") == tokens


@pytest.mark.parametrize(
    ("options", "usage"),
    [
        (None, None),
        ({}, None),
        ({"include_usage": None}, None),
        ({"include_usage": True}, True),
        ({"include_usage": False}, False),
    ],
)
def test_usage_in_stream(options: Any, usage: bool | None) -> None:
    """Silence, yes and no are three answers."""
    assert output.usage_in_stream({"stream_options": options}) is usage


@pytest.mark.parametrize(
    ("metadata", "hint"),
    [(None, None), ({}, None), ("x", None), ({"quantgate_task": "code"}, "code"), ({"quantgate_task": 3}, None)],
)
def test_task_hint(metadata: Any, hint: str | None) -> None:
    """A hint is a string under its own name; any other metadata is the client's."""
    assert output.task_hint({"metadata": metadata}) == hint


def test_format_needs_an_object() -> None:
    """The param is the field that the API's own documentation names."""
    with pytest.raises(ApiError) as caught:
        output.format_of([], "text.format")
    assert caught.value.param == "text.format"
