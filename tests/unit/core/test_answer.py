"""Answers in every runtime's shape: content or not, errors, usage, why they ended."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import answer
from gateway.core.answer import AnswerInfo, answer_info, error_of, finish_of, is_content, is_document, usage_of


def delta(**fields: Any) -> dict[str, Any]:
    """A chat chunk with this delta."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


@pytest.mark.parametrize(
    "event",
    [
        delta(content="x"),
        delta(reasoning="x"),
        delta(reasoning_content="x"),
        delta(tool_calls=[{"index": 0, "id": "c0", "function": {"name": "f", "arguments": ""}}]),
        delta(function_call={"name": "f"}),
        delta(refusal="no"),
        delta(audio={"id": "a"}),
        delta(x_vendor_thought="x"),
        {"choices": [{"index": 0, "text": "x"}]},
        {"choices": [{"index": 1, "delta": {}}, {"index": 0, "delta": {"content": "x"}}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "whole"}}]},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "x"}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "response.reasoning_text.delta", "delta": "x"},
        {"type": "response.function_call_arguments.delta", "delta": "{"},
        {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}},
        {"type": "speech.audio.delta", "audio": "AAAA"},
        {"type": "transcript.text.delta", "delta": "x"},
        {"type": "transcript.text.segment", "id": "s0", "speaker": "A", "text": "x"},
    ],
)
def test_content(event: dict[str, Any]) -> None:
    """Text, reasoning (B36), tool calls, audio and whatever else a runtime invents."""
    assert is_content(event)


@pytest.mark.parametrize(
    "event",
    [
        {},
        delta(),
        delta(role="assistant"),
        delta(role="assistant", content="", reasoning_content=None, tool_calls=[]),
        delta(content=""),
        {"choices": []},
        {"choices": None},
        {"choices": [None, 3, {"delta": None}, {"text": ""}]},
        {"choices": [], "usage": {"prompt_tokens": 1}},
        {"error": {"message": "x"}},
        {"type": 3},
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}},
        {"type": "content_block_delta", "delta": "x"},
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.output_item.added", "item": {"type": "message", "content": []}},
        {"type": "response.output_item.added", "item": None},
        {"type": "speech.audio.delta", "audio": ""},
        {"type": "speech.audio.done", "usage": {"input_tokens": 1}},
        {"type": "transcript.text.done", "text": "x"},
    ],
)
def test_no_content(event: dict[str, Any]) -> None:
    """A role, an empty string, usage, an error or a life sign is no output (usage without choices: B22)."""
    assert not is_content(event)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"message": "queue full", "code": 503}}, {"message": "queue full", "code": 503}),
        ({"error": "Unauthorized"}, {"message": "Unauthorized"}),
        ({"error": None, "choices": []}, None),
        ({"object": "error", "message": "x", "code": 400}, {"object": "error", "message": "x", "code": 400}),
        ({"type": "error", "error": {"type": "overloaded_error"}}, {"type": "overloaded_error"}),
        ({"type": "error", "code": "x", "message": "y"}, {"type": "error", "code": "x", "message": "y"}),
        ({"type": "response.failed", "response": {"error": {"code": "x"}}}, {"code": "x"}),
        ({"type": "response.failed", "response": None}, {"message": "response.failed"}),
        ({"detail": "Server is pinned"}, {"message": "Server is pinned"}),
        ({"choices": [], "detail": "x"}, None),
        ({"object": "chat.completion"}, None),
    ],
)
def test_errors(body: dict[str, Any], error: dict[str, Any] | None) -> None:
    """OpenAI's object, vLLM's bare string, SGLang's flat form, FastAPI's detail, Anthropic's and Responses' events."""
    assert error_of(body) == error


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, (3, -1, 4)),
        ({"usage": {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}}, (3, 2, -1)),
        ({"usage": {"prompt_tokens": 3, "prompt_tokens_details": None}}, (3, -1, -1)),
        ({"usage": {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 1}}}, (3, 1, 4)),
        ({"usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4}}, (9, 2, -1)),
        ({"usage": {"input_tokens": 3, "cache_read_input_tokens": None}}, (3, -1, -1)),
        ({"usage": {"prompt_tokens": 3, "cache_read_input_tokens": 2}}, (3, 2, -1)),
        ({"usage": {"cache_read_input_tokens": 2, "output_tokens": 4}}, (-1, 2, 4)),
        ({"type": "message_start", "message": {"usage": {"input_tokens": 5}}}, (5, -1, -1)),
        ({"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 6}}}, (5, -1, 6)),
        ({"usage": {"prompt_tokens": "3", "completion_tokens": -1}}, (-1, -1, -1)),
        ({"usage": {"prompt_tokens": 1e30, "completion_tokens": True}}, (-1, -1, -1)),
        ({"usage": None}, None),
        ({"usage": []}, None),
        ({"message": "text"}, None),
        ({}, None),
    ],
)
def test_usage(body: dict[str, Any], usage: tuple[int, int, int] | None) -> None:
    """All three families' names; what is missing or odd is unknown, never zero. A prompt of the Messages API is what
    was read from the cache, what was written to it, and the rest."""
    assert usage_of(body) == usage


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"choices": [{"finish_reason": "stop"}]}, "stop"),
        ({"choices": [{"finish_reason": None}]}, ""),
        ({"choices": [{"finish_reason": "length"}, {"finish_reason": "tool_calls"}]}, "tool_calls"),
        ({"choices": [{"finish_reason": "a word of its own"}]}, "other"),
        ({"choices": [{"finish_reason": 3}, None]}, "other"),
        ({"choices": [{}]}, ""),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, "length"),
        ({"type": "message_delta", "delta": {"stop_reason": None}}, ""),
        ({"type": "response.completed", "response": {"object": "response", "status": "completed"}}, "stop"),
        (
            {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
        ),
        (
            {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
        ),
        ({"object": "response", "status": "in_progress"}, ""),
        ({"object": "response", "status": ["x"]}, ""),
        ({"object": "response", "status": "failed"}, "error"),
        ({}, ""),
    ],
)
def test_finish(body: dict[str, Any], reason: str) -> None:
    """Normalised to a closed set, so that it can label a metric."""
    assert finish_of(body) == reason


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["error", "response", "x.delta"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("choices", "delta", "usage", "error", "type", "response", "message", "content_block", "item"),
                    *(
                        "object",
                        "status",
                        "finish_reason",
                        "stop_reason",
                        "incomplete_details",
                        "prompt_tokens_details",
                    ),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_no_answer_breaks_the_observer(value: Any) -> None:
    """Whatever JSON a pool sends, looking at it never raises (B21)."""
    if isinstance(value, dict):
        is_content(value), error_of(value), usage_of(value), finish_of(value)
    info = answer_info(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS) if _fits(value) else b"0")
    assert isinstance(info, AnswerInfo)


def _fits(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


@given(st.binary(max_size=80))
def test_no_bytes_break_the_observer(body: bytes) -> None:
    """Nor does what is not JSON at all."""
    assert isinstance(answer_info(body), AnswerInfo)


CHAT = {
    "id": "x",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}


def test_answer_info() -> None:
    """A whole chat answer."""
    assert answer_info(orjson.dumps(CHAT)) == AnswerInfo(3, -1, 4, "stop", None, True)
    assert answer_info(b"[1]") == AnswerInfo()
    assert answer_info(b'{"error":{"message":"x"}}').error == {"message": "x"}


_COUNT = st.sampled_from([0, 7, -1, 3.0, 2.5, 1 << 40, 1 << 70, True, None, "7", {}])
_DETAILS = st.none() | st.dictionaries(st.sampled_from(["cached_tokens", "audio_tokens"]), _COUNT, max_size=2) | _COUNT
_USAGE = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": _COUNT,
        "completion_tokens": _COUNT,
        "input_tokens": _COUNT,
        "output_tokens": _COUNT,
        "prompt_tokens_details": _DETAILS,
        "input_tokens_details": _DETAILS,
        "cache_read_input_tokens": _COUNT,
    },
)
_WORD = st.sampled_from(["stop", "length", "tool_use", "x", "", None, 3, [], "\N{SNOWMAN}"])
_CHOICE = st.fixed_dictionaries({"message": st.just({"content": 'a "usage":{} }'})}, optional={"finish_reason": _WORD})
_ODD = st.sampled_from([None, 3, "x", [], {}, {"usage": {"prompt_tokens": 5}}, {"stop_reason": "end_turn"}])
_ANSWER = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(_CHOICE | _ODD, max_size=3) | st.lists(_CHOICE, max_size=2) | _ODD,
        "usage": _USAGE | _ODD,
        "object": st.sampled_from(["chat.completion", "text_completion", "response", "error", None, 3]),
        "type": st.sampled_from(["message", "error", "response.failed", None, 3]),
        "status": st.sampled_from(["completed", "incomplete", "failed", None, 3]),
        "incomplete_details": st.fixed_dictionaries({"reason": _WORD}) | _ODD,
        "stop_reason": _WORD,
        "error": _ODD,
        "detail": _ODD,
        "model": st.just("m"),
        **dict.fromkeys(("response", "message", "delta"), _ODD),
    },
)


@given(_ANSWER)
def test_the_quick_reading_says_what_the_slow_one_says(value: dict[str, Any]) -> None:
    """Of every shape, usual or odd: a whole answer's decoder knows a part of what ``usage_of`` and its like know."""
    body = json.dumps(value).encode()
    counts = usage_of(orjson.loads(body)) or (-1, -1, -1)
    expected = AnswerInfo(*counts, finish_of(value), error_of(value), True)
    assert answer_info(body) == answer_info(body, chat=False) == expected


def test_the_quick_reading_is_one() -> None:
    """The usual answer is read without the slow reading, and nothing in its text or its further fields hinders that."""
    odd = {**CHAT, "object": "chat.completion", "x": [1e300, {"usage": 3}], "error": None, "type": None}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
    body = json.dumps({**odd, "usage": usage}).replace('"x"', '"\\u0078"').replace("finish", "fini\\u0073h").encode()
    assert answer_info(body) == AnswerInfo(3, 2, 4, "stop", None, True)
    assert answer._of_usual(answer._usual(body)) == answer_info(body)


def test_an_answer_that_is_not_utf8_tells_its_usage() -> None:
    """What is not read need not be text."""
    assert answer_info(orjson.dumps(CHAT).replace(b"hi", b"\xff")) == AnswerInfo(3, -1, 4, "stop", None, True)


def test_long_answers_are_read_from_their_end() -> None:
    """Past the bound only the last bytes are parsed; the answer's own text cannot pose as usage."""
    text = 'and then "usage":{"prompt_tokens":999} ' * 4_000
    body = orjson.dumps({**CHAT, "choices": [{**CHAT["choices"][0], "message": {"content": text}}]})
    assert len(body) > answer.PARSE_MOST
    assert answer_info(body) == AnswerInfo(3, -1, 4, "stop", None, True)
    vectors = orjson.dumps({"data": [{"embedding": [0.5] * 40_000}], "usage": {"prompt_tokens": 8, "total_tokens": 8}})
    assert answer_info(vectors) == AnswerInfo(8, -1, -1, "", None, True)
    cut = orjson.dumps({"data": [0.5] * 40_000, "usage": {"prompt_tokens": 8}})[:-3]
    assert answer_info(cut) == AnswerInfo()


def test_lone_surrogates_are_read() -> None:
    """A delta with half a pair is output like any other (B104)."""
    assert is_content(answer.parse(b'{"choices":[{"delta":{"content":"\\ud83d"}}]}'))  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        answer.parse(b'{"a":"\\ud83d" x')


def test_deep_answers_are_given_up_quietly() -> None:
    """Nesting in an answer exhausts no stack (B107)."""
    deep = b'{"x":"\\ud83d","y":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    with pytest.raises(ValueError, match="deep"):
        answer.parse(deep)
    assert answer_info(deep) == AnswerInfo()
    assert answer.usage_at(b"[" * 20_000, 0) is None


@pytest.mark.parametrize("body", [b"{}", b'[{"a": 1}]', b' {"logprob": -Infinity}\n', b"{" + b"[" * 5000 + b"}"])
def test_documents(body: bytes) -> None:
    """What begins and ends as JSON is taken for it, whatever is between."""
    assert is_document(body)


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"}", b'{"a": "cut', b"<html></html>", b"null", b'"text"', b"[}"])
def test_no_documents(body: bytes) -> None:
    """Pages, scraps, cut answers, and values that are no answer of any API."""
    assert not is_document(body)
