"""Typed access names the field and passes null and absent."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.core.openai import fields
from gateway.errors import ApiError

_READERS: dict[str, tuple[Callable[[dict[str, Any], str], Any], Any, list[Any]]] = {
    "flag": (fields.flag, True, ["true", 1, 0, [], {}]),
    "whole": (fields.whole, 3, [3.5, 1e17, "3", True, []]),
    "number": (fields.number, 0.5, ["0.5", True, {}]),
    "text": (fields.text, "x", [1, True, [], {}]),
    "items": (fields.items, [1], ["x", 1, {}]),
    "members": (fields.members, {"a": 1}, ["x", 1, []]),
}


@pytest.mark.parametrize("name", list(_READERS))
def test_right_types_are_returned(name: str) -> None:
    """A value of the right type comes back as it is."""
    reader, value, _ = _READERS[name]
    assert reader({"field": value}, "field") == value


@pytest.mark.parametrize("name", list(_READERS))
def test_null_and_absent_pass(name: str) -> None:
    """Clients send nulls for what they did not set: that is no error."""
    reader, _, _ = _READERS[name]
    assert not reader({}, "field")
    assert not reader({"field": None}, "field")


@pytest.mark.parametrize("name", list(_READERS))
def test_wrong_types_name_the_field(name: str) -> None:
    """A wrong type is a 400 whose param is the field."""
    reader, _, wrong = _READERS[name]
    for value in wrong:
        with pytest.raises(ApiError) as caught:
            reader({"field": value}, "field")
        assert (caught.value.status, caught.value.param) == (400, "field")


def test_whole_numbers_are_numbers() -> None:
    """``temperature: 1`` is as good as ``1.0``."""
    assert fields.number({"temperature": 1}, "temperature") == 1.0
    found = fields.whole({"max_tokens": 5.0}, "max_tokens")
    assert (found, type(found)) == (5, int)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "missing_model"),
        ({"model": None}, "missing_model"),
        ({"model": ""}, "missing_model"),
        ({"model": 4}, "invalid_type"),
    ],
)
def test_a_model_is_needed(body: dict[str, Any], code: str) -> None:
    """Three of eight runtimes answer to any name, so the gateway insists on one."""
    with pytest.raises(ApiError) as caught:
        fields.model_of(body)
    assert (caught.value.code, caught.value.param) == (code, "model")


@pytest.mark.parametrize(
    ("messages", "code"),
    [(None, "missing_messages"), ([], "empty_messages"), ("hi", "invalid_type"), ({}, "invalid_type")],
)
def test_messages_are_needed(messages: Any, code: str) -> None:
    """Missing, empty and mistyped messages are told apart."""
    with pytest.raises(ApiError) as caught:
        fields.messages_of({"messages": messages})
    assert (caught.value.code, caught.value.param) == (code, "messages")
