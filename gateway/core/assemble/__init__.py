"""Answer bytes (JSON body or raw event stream) of any generating API → one assembled `Answer`.

The map: `events` splits a stream, `exact_json` reads hostile JSON without losing digits, `chat`, `responses` and
`messages` know one API each, `parts` joins their fragments, `answer` is the result. `assemble` never raises: what
cannot be read is said in the answer. Called by the quality checks and by the comparison of shadow pairs, off the
event loop.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from gateway.core.assemble import chat, messages, responses
from gateway.core.assemble.answer import Answer, AnswerError, Choice, ToolCall, Usage
from gateway.core.assemble.events import Event, looks_like_stream, split_events
from gateway.core.assemble.exact_json import JsonProblemError, canonical_text, parse_envelope, parse_exact
from gateway.core.assemble.parts import AnswerParts, as_object, as_text
from gateway.model.enums import Api

__all__ = [
    "Answer",
    "AnswerError",
    "Choice",
    "JsonProblemError",
    "ToolCall",
    "Usage",
    "api_of_request",
    "assemble",
    "canonical_text",
    "looks_like_stream",
    "parse_envelope",
    "parse_exact",
]


class _Reader(NamedTuple):
    """How one API's body and events are read."""

    body: Callable[[AnswerParts, dict[str, Any]], None]
    event: Callable[[AnswerParts, dict[str, Any]], None]


_READERS: Final = {
    Api.CHAT: _Reader(chat.read_body, chat.read_event),
    Api.COMPLETIONS: _Reader(chat.read_body, chat.read_event),
    Api.RESPONSES: _Reader(responses.read_body, responses.read_event),
    Api.MESSAGES: _Reader(messages.read_body, messages.read_event),
}
_MESSAGE_EVENTS: Final = ("message_", "content_block_")
_OBJECT_IN_CALL: Final = re.compile(rb'"(?:arguments|input)"\s*:\s*[\[{]')


def assemble(request: bytes | Mapping[str, Any] | None, answer: bytes) -> Answer:
    """Assemble one answer.

    ``request`` (the body, as bytes or parsed) only decides the API where the answer itself does not show it, as an
    error or an empty stream. Never raises; an answer that cannot be read has ``problem`` set.
    """
    asked = api_of_request(request)
    try:
        return _assemble_stream(asked, answer) if looks_like_stream(answer) else _assemble_body(asked, answer)
    except (
        RecursionError
    ):  # the fast reader lets 1,024 levels through, which a caller deep in its own stack cannot walk
        return Answer(api=asked, problem="nested too deeply")


def api_of_request(request: bytes | Mapping[str, Any] | None) -> Api:
    """The API that a request body is written for; chat where nothing speaks for another."""
    if isinstance(request, bytes):
        try:
            request = as_object(parse_envelope(request))
        except JsonProblemError:
            request = None
    if not request:
        return Api.CHAT
    if "messages" in request:
        tools = request.get("tools")
        blocks = isinstance(tools, list) and any("input_schema" in as_object(tool) for tool in tools)
        return Api.MESSAGES if blocks or "system" in request or "anthropic_version" in request else Api.CHAT
    if "input" in request:
        return Api.RESPONSES
    return Api.COMPLETIONS if "prompt" in request else Api.CHAT


def _assemble_body(asked: Api, raw: bytes) -> Answer:
    parts = AnswerParts()
    fields: dict[str, Any] = {}
    try:
        body = parse_envelope(raw, exact=True)
    except JsonProblemError as error:
        problem = "the body is empty" if not raw.strip() else f"the body is no JSON: {error.message}"
        return parts.build(asked, {"problem": problem, "broken_tail": error.cut and bool(raw.strip())})
    api = _api_of_answer(body, asked)
    if not isinstance(body, dict):
        fields["problem"] = "the body is JSON, but no object"
    elif _is_error(body):
        parts.add_error(body.get("error") or body)
        parts.done = True
    else:
        _READERS[api].body(parts, body)
        if not parts.choices:
            fields["problem"] = "the body holds no choice"
    return parts.build(api, fields)


def _assemble_stream(asked: Api, raw: bytes) -> Answer:
    parts = AnswerParts()
    api: Api | None = None
    events, tail = split_events(raw)
    broken = 0
    for event in events:
        data = event.data.strip()
        if data == b"[DONE]":
            parts.done = True
            continue
        found = _read_json(data)
        if not isinstance(found, dict):
            broken += bool(data)
            continue
        api = api or _api_of_event(found)
        _read_event(parts, event, found, api or asked)
    broken_tail = False
    if tail is not None:
        # the last event may lack only its blank line: then it counts, as clients that read by line see it too
        data = tail.data.strip()
        found = _read_json(data)
        if data == b"[DONE]":
            parts.done = True
        elif isinstance(found, dict):
            api = api or _api_of_event(found)
            _read_event(parts, tail, found, api or asked)
        else:
            broken_tail = bool(data)
    counts = {"events": len(events), "broken_events": broken, "broken_tail": broken_tail, "streamed": True}
    return parts.build(api or asked, counts)


def _read_event(parts: AnswerParts, event: Event, found: dict[str, Any], api: Api) -> None:
    if event.name == b"error" or _is_error(found):
        parts.add_error(found.get("error") or found)
        if "choices" not in found:
            return
    _READERS[api].event(parts, found)


def _read_json(data: bytes) -> Any:
    """The event's value; None where it cannot be read. Calls given as objects are read again for their digits."""
    # two substring tests keep the expression off nearly all events
    object_in_call = (b'"arguments"' in data or b'"input"' in data) and _OBJECT_IN_CALL.search(data) is not None
    try:
        return parse_envelope(data, exact=object_in_call)
    except JsonProblemError:
        return None


def _is_error(found: dict[str, Any]) -> bool:
    """An error object in any runtime's shape: OpenAI's, the flat one, FastAPI's ``detail``, or an error event."""
    if found.get("error") and found.get("object") != "response":
        return True
    if found.get("object") == "error" or found.get("type") == "error":
        return True
    return "detail" in found and "choices" not in found and "type" not in found and "object" not in found


def _api_of_event(found: dict[str, Any]) -> Api | None:
    kind = as_text(found.get("type"))
    if kind.startswith("response."):
        return Api.RESPONSES
    if kind.startswith(_MESSAGE_EVENTS):
        return Api.MESSAGES
    return _api_of_choices(found)


def _api_of_choices(found: dict[str, Any]) -> Api | None:
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    first = as_object(choices[0])
    legacy = "text" in first and "delta" not in first and "message" not in first
    return Api.COMPLETIONS if legacy else Api.CHAT


def _api_of_answer(body: Any, asked: Api) -> Api:
    found = as_object(body)
    if found.get("object") == "response" or isinstance(found.get("output"), list):
        return Api.RESPONSES
    if found.get("type") == "message" or (isinstance(found.get("content"), list) and "choices" not in found):
        return Api.MESSAGES
    return _api_of_choices(found) or (Api.CHAT if "choices" in found else asked)
