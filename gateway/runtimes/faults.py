"""Reading a runtime's error body, whatever its shape, into one value.

Runtimes answer errors in many shapes: ``{"error": {…}}``, ``{"error": "text"}``, ``{"message": …}``, ``{"detail": …}``,
plain text; one runtime mixes several. Pure; tolerant: any bytes give a fault. No caller's text is kept beyond
``MESSAGE_CHARS``. Called by the readers of health, to say why an endpoint is not ready.
"""

from typing import cast

import msgspec
import orjson

DEPTH_MOST = 8  # errors in errors; gateways in a row wrap each other's
MESSAGE_CHARS = 500
"""A message is cut here: some runtimes put a whole traceback, or the prompt, into it."""


class Fault(msgspec.Struct, frozen=True):
    """One error: ``message`` (empty if the body said nothing), ``type``, ``code`` and ``param`` where given."""

    message: str
    type: str | None = None
    code: str | None = None
    param: str | None = None


def read_fault(body: bytes) -> Fault:
    """The fault that an error body tells. Never raises."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Fault(_cut(body.decode("utf-8", "replace").strip()))
    return _from_value(value)


def _from_value(value: object, depth: int = 0) -> Fault:
    if isinstance(value, str):
        return Fault(_cut(value))
    if not isinstance(value, dict):
        return Fault("")
    fields = cast("dict[str, object]", value)
    inner = fields.get("error")
    if inner is None:
        inner = fields.get("detail")
    if isinstance(inner, str):
        return Fault(_cut(inner), type=_word(fields.get("type")), code=_word(fields.get("code")))
    if isinstance(inner, dict) and depth < DEPTH_MOST:
        return _from_value(inner, depth + 1)
    if isinstance(inner, list):
        return Fault(_cut("; ".join(_validation(item) for item in inner)), param=_location(inner))
    message = fields.get("message")
    return Fault(
        _cut(message) if isinstance(message, str) else "",
        type=_word(fields.get("type")),
        code=_word(fields.get("code")),
        param=_word(fields.get("param")),
    )


def _validation(item: object) -> str:
    """One entry of FastAPI's validation list: where and what, without the input it quotes."""
    if not isinstance(item, dict):
        return str(item)
    place = _place(item)
    text = str(item.get("msg", "invalid"))
    return f"{place}: {text}" if place else text


def _location(items: list[object]) -> str | None:
    first = items[0] if items else None
    return _place(first) or None if isinstance(first, dict) else None


def _place(item: dict[str, object]) -> str:
    """Where in the request; empty if the entry does not say it as a list."""
    steps = item.get("loc")
    return ".".join(str(step) for step in steps if step != "body") if isinstance(steps, list) else ""


def _word(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) and value != "" else None


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARS else text[: MESSAGE_CHARS - 1] + "…"
