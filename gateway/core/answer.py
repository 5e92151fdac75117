"""What an answer says about itself: content or not, error, usage, why it ended. By shape, over all three API families.

Works on parsed events and on whole JSON bodies; framing of streams is ``gateway.core.sse``. Everything here tolerates
odd upstream answers (null, missing, wrong types): an observer may never break what it observes.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson

from gateway.model.answer import ChatAnswer

Json = dict[str, Any]

PARSE_MOST: Final = 65_536
"""Bodies up to this many bytes are parsed whole; of longer ones only the end is looked at."""

TAIL: Final = 4_096
"""So many bytes at the end of a long body are looked at."""

_NO_USAGE: Final = (-1, -1, -1)
_NOT_OUTPUT: Final = frozenset(("role", "name", "id", "type"))
_VALUES: Final = json.JSONDecoder()
_USAGE: Final = re.compile(rb'"usage"\s*:\s*(?=\{)')
_FINISH: Final = re.compile(rb'"(?:finish_reason|stop_reason)"\s*:\s*"([a-z_]{1,40})"')

# Runtimes' words for the end of an answer, as OpenAI's chat API says them. A closed set, so it can label a metric.
_REASONS: Final = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "incomplete": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "abort": "abort",
    "cancelled": "abort",
    "error": "error",
    "failed": "error",
}


@dataclass(init=False, unsafe_hash=True)
class AnswerInfo:
    """Token counts (-1 = not said), a normalised ``finish_reason`` ("" = none seen, ``other`` = a word of its own), the
    error object if there was one, and whether the stream's own terminator was seen. Made once and never changed."""

    prompt_tokens: Final[int]
    cached_tokens: Final[int]
    completion_tokens: Final[int]
    finish_reason: Final[str]
    error: Final[Json | None]
    done: Final[bool]

    def __init__(  # noqa: PLR0917 - the fields in their order
        self,
        prompt_tokens: int = -1,
        cached_tokens: int = -1,
        completion_tokens: int = -1,
        finish_reason: str = "",
        error: Json | None = None,
        done: bool = False,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = cached_tokens
        self.completion_tokens = completion_tokens
        self.finish_reason = finish_reason
        self.error = error
        self.done = done


_loads: Final = orjson.loads
_usual: Final = msgspec.json.Decoder(ChatAnswer).decode


def parse(data: bytes) -> object:
    """A JSON value; lone surrogates are let through. ``ValueError`` for what is not JSON or nests too deeply."""
    try:
        return _loads(data)
    except orjson.JSONDecodeError:
        if b"\\u" not in data or len(data) > PARSE_MOST:
            raise
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_content(event: Json) -> bool:
    """Whether an event carries output: text, reasoning, a tool call, audio. Not a role, not an empty string, not usage.

    Any non-empty member of a delta counts, not only known names: a runtime's new kind of output must commit the answer
    and start the clock just as text does.
    """
    choices = event.get("choices")
    if type(choices) is list:
        return any(_choice_has_content(choice) for choice in choices if type(choice) is dict)
    kind = event.get("type")
    if type(kind) is not str:
        return False
    delta = event.get("delta")
    if kind == "content_block_delta":
        return _any_output(delta)
    if kind == "content_block_start":
        block = event.get("content_block")
        return type(block) is dict and (block.get("type") == "tool_use" or bool(block.get("text")))
    if kind.endswith(".delta"):
        return bool(delta) or bool(event.get("audio"))
    if kind == "transcript.text.segment":
        return bool(event.get("text"))
    if kind == "response.output_item.added":
        item = event.get("item")
        return type(item) is dict and str(item.get("type")).endswith("_call")
    return False


def _choice_has_content(choice: Json) -> bool:
    return bool(choice.get("text")) or _any_output(choice.get("delta")) or _any_output(choice.get("message"))


def _any_output(delta: object) -> bool:
    return type(delta) is dict and any(value and key not in _NOT_OUTPUT for key, value in delta.items())


def error_of(answer: Json) -> Json | None:
    """The error object of an event or body, in any of the runtimes' shapes; None when there is none."""
    error = answer.get("error")
    if error:
        return error if type(error) is dict else {"message": str(error)}
    if answer.get("object") == "error" or answer.get("type") == "error":
        return answer
    if answer.get("type") == "response.failed":
        response = answer.get("response")
        inner = response.get("error") if type(response) is dict else None
        return inner if type(inner) is dict else {"message": "response.failed"}
    if "detail" in answer and "choices" not in answer and "model" not in answer:
        return {"message": str(answer["detail"])}
    return None


def usage_of(answer: Json) -> tuple[int, int, int] | None:
    """(prompt, cached, completion) tokens of an event or body, -1 where unsaid; None without a usage object."""
    usage = answer.get("usage")
    if type(usage) is not dict:
        inner = answer.get("response") or answer.get("message")
        usage = inner.get("usage") if type(inner) is dict else None
        if type(usage) is not dict:
            return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if type(details) is dict else usage.get("cache_read_input_tokens")
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    if prompt >= 0 and "prompt_tokens" not in usage:
        # The Messages API counts a prompt in three parts: read from the cache, written to it, and the rest.
        for part in ("cache_read_input_tokens", "cache_creation_input_tokens"):
            prompt += max(_count(usage.get(part)), 0)
    return prompt, _count(cached), _count(usage.get("completion_tokens", usage.get("output_tokens")))


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 40 else -1


def finish_of(answer: Json) -> str:
    """Why an event or body says it ended, normalised; "" when it does not. Of several choices the last that says."""
    choices = answer.get("choices")
    if type(choices) is list:
        found = ""
        for choice in choices:
            reason = choice.get("finish_reason") if type(choice) is dict else None
            if reason:
                found = _reason(reason)
        return found
    if "stop_reason" in answer:
        return _reason(answer["stop_reason"])
    delta = answer.get("delta")
    if type(delta) is dict and "stop_reason" in delta:
        return _reason(delta["stop_reason"])
    response = answer.get("response") if type(answer.get("response")) is dict else answer
    if type(response) is dict and response.get("object") == "response":
        status = response.get("status")
        details = response.get("incomplete_details")
        if status == "incomplete" and type(details) is dict:
            return _reason(details.get("reason"))
        return _REASONS.get(status, "") if type(status) is str else ""
    return ""


def _reason(word: object) -> str:
    if not word:
        return ""
    return _REASONS.get(word, "other") if type(word) is str else "other"


def answer_info(body: bytes, *, chat: bool = True) -> AnswerInfo:
    """What a JSON answer says. Bodies over ``PARSE_MOST`` are read from their end, where every runtime puts usage.

    ``chat``: it is probably one of chat or completions. It says the same either way, sooner where that is right.
    """
    if len(body) > PARSE_MOST:
        return end_info(body)
    if chat:
        try:
            return _of_usual(_usual(body))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
    return _of_any(body)


def _of_usual(answer: ChatAnswer) -> AnswerInfo:
    usage, reason = answer.usage, ""
    for choice in answer.choices:
        reason = choice.finish_reason or reason
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else -1
    return AnswerInfo(
        _count(usage.prompt_tokens), _count(cached), _count(usage.completion_tokens), _reason(reason), None, True
    )


def _of_any(body: bytes) -> AnswerInfo:
    """Whatever the shape. Bytes that are no JSON say nothing."""
    try:
        answer = parse(body)
    except ValueError:
        return AnswerInfo()
    if type(answer) is not dict:
        return AnswerInfo()
    prompt, cached, completion = usage_of(answer) or _NO_USAGE
    return AnswerInfo(prompt, cached, completion, finish_of(answer), error_of(answer), True)


def end_info(body: bytes) -> AnswerInfo:
    """What the end of a long JSON answer says; errors are not looked for."""
    tail = body[-TAIL:]
    usage = None
    for found in _USAGE.finditer(tail):
        usage = usage_at(tail, found.end()) or usage
    reasons = _FINISH.findall(tail)
    reason = _reason(reasons[-1].decode()) if reasons else ""
    prompt, cached, completion = usage or _NO_USAGE
    return AnswerInfo(prompt, cached, completion, reason, None, body.rstrip().endswith(b"}"))


def is_document(body: bytes) -> bool:
    """Whether bytes begin and end as a JSON object or list does. What is between them is the client's to judge."""
    body = body.strip()
    ends = body[:1] + body[-1:]
    return len(body) > 1 and ends in (b"{}", b"[]")


def usage_at(data: bytes, at: int) -> tuple[int, int, int] | None:
    """The usage object that begins at ``at``, if it is whole."""
    try:
        value, _ = _VALUES.raw_decode(data[at:].decode("latin-1"))
    except (ValueError, RecursionError):
        return None
    return usage_of({"usage": value})
