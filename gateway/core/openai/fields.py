"""Typed access to a body's fields. A wrong type is a 400 that names the field; a missing or null field is ``None``.

Only fields the gateway reads pass through here. Checks are by exact type: JSON has no subclasses, and ``True`` is
not a number.
"""

from typing import Any, Final

from gateway.core.openai.parse import Json
from gateway.errors import ApiError

_EXACT_MOST: Final = 2.0**53


def wrong(param: str, wanted: str) -> ApiError:
    """The 400 for a field of the wrong type."""
    return ApiError(400, "invalid_type", f"'{param}' must be {wanted}.", param=param)


def model_of(body: Json) -> str:
    """``model``: a non-empty string. ``ApiError`` 400 otherwise."""
    model = body.get("model")
    if type(model) is str and model:
        return model
    if model is None or model == "":
        raise ApiError(
            400, "missing_model", "The request names no model: set 'model' to one of GET /v1/models.", param="model"
        )
    raise wrong("model", "a string")


def flag(body: Json, key: str, param: str = "") -> bool:
    """A boolean; absent and null are false. ``param`` names the field where it stands deeper than on top."""
    value = body.get(key)
    if value is None or value is False:
        return False
    if value is True:
        return True
    raise wrong(param or key, "true or false")


def whole(body: Json, key: str) -> int | None:
    """An integer, or None when absent or null. ``5.0`` is one too, as it is to the runtimes: clients in languages that
    have one kind of number write it so. Beyond 2**53 a float no longer says which integer was meant."""
    value = body.get(key)
    if value is None or type(value) is int:
        return value
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT_MOST:
        return int(value)
    raise wrong(key, "an integer")


def number(body: Json, key: str) -> float | None:
    """A number, or None when absent or null."""
    value = body.get(key)
    if value is None or type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise wrong(key, "a number")


def text(body: Json, key: str) -> str | None:
    """A string, or None when absent or null."""
    value = body.get(key)
    if value is None or type(value) is str:
        return value
    raise wrong(key, "a string")


def items(body: Json, key: str) -> list[Any]:
    """An array; absent and null are empty."""
    value = body.get(key)
    if value is None:
        return []
    if type(value) is list:
        return value
    raise wrong(key, "an array")


def members(body: Json, key: str) -> Json | None:
    """An object, or None when absent or null."""
    value = body.get(key)
    if value is None or type(value) is dict:
        return value
    raise wrong(key, "an object")


def messages_of(body: Json) -> list[Any]:
    """``messages``: a non-empty array. ``ApiError`` 400 otherwise."""
    messages = body.get("messages")
    if messages is None:
        raise ApiError(400, "missing_messages", "The request has no 'messages'.", param="messages")
    if type(messages) is not list:
        raise wrong("messages", "an array")
    if not messages:
        raise ApiError(400, "empty_messages", "'messages' must hold at least one message.", param="messages")
    return messages
