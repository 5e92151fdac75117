"""Assembly: whatever the API and however the bytes were framed, the same answer comes out, and nothing ever raises."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.assemble import Answer, api_of_request, assemble
from gateway.model.enums import Api
from tests.unit.core.assemble.streams import FIN, USER, assembled, chunk, stream


def test_error_objects_inside_a_200_stream() -> None:
    """B17, B19: any runtime's error shape is recorded with its code, and is no truncation."""
    for error in (
        {"error": {"message": "m", "code": 503}},
        {"object": "error", "message": "m", "code": 503},
        {"error": "m", "code": 503},
    ):
        answer = assembled(chunk({"content": "a"}), error, done=False)
        assert [found.message for found in answer.errors] == ["m"]
        assert not answer.truncated
    assert assembled({"error": {"message": "m", "code": 503}}).errors[0].code == "503"
    assert assembled({"detail": "d"}).errors[0].message == "d"


def test_last_event_without_blank_line_counts() -> None:
    """A terminator or chunk that only lacks its blank line is read."""
    answer = assemble(USER, stream(chunk({"content": "a"}), FIN).rstrip(b"\n"))
    assert answer.done
    assert not answer.broken_tail


@pytest.mark.parametrize(
    ("request_body", "api"),
    [
        (USER, Api.CHAT),
        ({"prompt": "x"}, Api.COMPLETIONS),
        ({"input": "x"}, Api.RESPONSES),
        ({"messages": [], "system": "s"}, Api.MESSAGES),
        ({"messages": [], "tools": [{"name": "f", "input_schema": {}}]}, Api.MESSAGES),
        (b"not json", Api.CHAT),
        (None, Api.CHAT),
    ],
)
def test_api_of_request(request_body: Any, api: Api) -> None:
    """The request's own fields tell its API."""
    assert api == api_of_request(request_body)


@pytest.mark.parametrize(
    "raw", [b"", b"   ", b"<html>502</html>", b"[]", b"{}", b"null", b"[" * 30_000, b'{"a":' * 30_000, b"\xff\xfe\x00"]
)
def test_unreadable_bodies_say_so(raw: bytes) -> None:
    """What is no answer has a problem set instead of raising."""
    assert assemble(USER, raw).problem


def test_hostile_indices_and_types() -> None:
    """Huge, negative, textual and missing indices, and fields of the wrong type, neither raise nor exhaust memory."""
    answer = assembled(
        *(chunk({"content": "x"}, index=number) for number in range(1000)),
        chunk({"content": 5, "tool_calls": {"a": 1}, "reasoning": []}, index=10**30),
        {
            "choices": [
                None,
                3,
                {"index": "1", "delta": None},
                {"delta": {"tool_calls": [None, 7, {"index": 10**40, "function": "f"}]}},
            ]
        },
        {"choices": [{"index": 0, "finish_reason": {"deep": [[[]]]}}]},
        {"usage": {"prompt_tokens": -5, "completion_tokens": "7", "prompt_tokens_details": 3}},
    )
    assert len(answer.choices) == 128
    assert answer.choices[0].finish_reason == "unreadable"


def test_nesting_that_only_the_fast_reader_accepts() -> None:
    """Arguments nested between the two readers' limits are not walked into a RecursionError."""
    deep = "[" * 900 + "]" * 900
    raw = (
        'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","argu\\u006dents":'
        + deep
        + "}}]}}]}\n\n"
    ).encode()
    assert isinstance(assemble(USER, raw), Answer)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "index",
                    "id",
                    "type",
                    "error",
                    "usage",
                    "finish_reason",
                    "output",
                    "response",
                    "item",
                    "text",
                    "input",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=14,
)


@settings(max_examples=300)
@given(
    st.lists(JSON, max_size=4),
    st.booleans(),
    st.sampled_from([None, USER, {"input": "x"}, {"system": "x", "messages": []}, {"prompt": "x"}]),
)
def test_any_json_in_any_place_never_raises(items: list[Any], streamed: bool, request_body: Any) -> None:
    """Values of every shape under every field name, as events or as a body."""
    raw = stream(*items) if streamed else json.dumps(items[0] if items else None).encode()
    assert isinstance(assemble(request_body, raw), Answer)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_never_raise(raw: bytes) -> None:
    """Bytes of any kind, alone and as an event."""
    assert isinstance(assemble(raw, raw), Answer)
    assert isinstance(assemble(None, b"data: " + raw + b"\n\n"), Answer)


@given(st.text(min_size=1, max_size=40), st.data())
def test_text_is_the_same_however_it_was_cut(text: str, data: st.DataObject) -> None:
    """The pieces of a text give the text, wherever they were cut and however lines end."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    raw = stream(*(chunk({"content": piece}) for piece in pieces), FIN).replace(b"\n", end)
    answer = assemble(USER, raw)
    assert text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == answer.choices[0].text
