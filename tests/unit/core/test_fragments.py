"""The pieces of a stream: which belong together, and what is written when some of them change."""

import json
from typing import Any

import pytest

from gateway.core.fragments import Block, blocks_of, without_logprobs


def stream(*values: Any, end: str = "\n\n") -> bytes:
    """Events with these data."""
    return "".join(f"data: {json.dumps(value)}{end}" for value in values).encode()


def texts(raw: bytes) -> dict[tuple[Any, ...], str]:
    """The texts of a stream, each joined."""
    found: dict[tuple[Any, ...], str] = {}
    for block in blocks_of(raw):
        for fragment in block.fragments:
            found[fragment.channel] = found.get(fragment.channel, "") + fragment.text.decode()
    return found


def chunk(index: int = 0, **delta: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {"id": "c", "model": "m", "choices": [{"delta": delta, "index": index}]}


def call(index: int, arguments: str) -> dict[str, Any]:
    """A piece of a tool call."""
    return {"index": index, "function": {"arguments": arguments}}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([chunk(content="ab"), chunk(1, content="x"), chunk(content="cd")], ["abcd", "x"]),
        ([chunk(reasoning="a"), chunk(content="x"), chunk(reasoning="b")], ["ab", "x"]),
        (
            [chunk(tool_calls=[call(0, "a"), call(1, "x")]), chunk(tool_calls=[call(1, "y"), call(0, "b")])],
            ["ab", "xy"],
        ),
        ([{"choices": [{"text": "a"}]}, {"choices": [{"text": "b"}]}], ["ab"]),
        (
            [
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
                {"type": "content_block_delta", "index": 1, "delta": {"partial_json": "x"}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "b"}},
            ],
            ["ab", "x"],
        ),
        (
            [
                {"type": "response.output_text.delta", "item_id": "1", "output_index": 0, "delta": "a"},
                {"type": "response.function_call_arguments.delta", "item_id": "2", "output_index": 1, "delta": "x"},
                {"type": "response.output_text.delta", "item_id": "1", "output_index": 0, "delta": "b"},
            ],
            ["ab", "x"],
        ),
    ],
)
def test_pieces_of_one_text_belong_together(events: list[dict[str, Any]], expected: list[str]) -> None:
    """For every API, choice, tool call and kind of text; ids and models are no pieces."""
    assert sorted(texts(stream(*events)).values()) == sorted(expected)


@pytest.mark.parametrize(
    "raw",
    [
        stream(chunk(content="a"), chunk(content="b")) + b"data: [DONE]\n\n",
        b": comment\n\nevent: x\nid: 7\ndata: {}\n\n\n\ndata: {\ndata: }\n\ndata: cut",
        stream(chunk(content="a"), end="\r\n\r\n"),
        b"",
        b"\n\n\n",
        b"no stream at all",
    ],
)
def test_what_is_not_changed_is_written_as_it_was(raw: bytes) -> None:
    """Every byte, also of what cannot be read."""
    assert b"".join(block.written() for block in blocks_of(raw)) == raw


def replaced(raw: bytes) -> bytes:
    """The stream with every piece in capitals."""
    blocks = list(blocks_of(raw))
    for block in blocks:
        for fragment in block.fragments:
            fragment.replace(fragment.text.upper())
    return b"".join(block.written() for block in blocks)


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_a_changed_event_keeps_its_frame(end: str) -> None:
    """Its name, id and comments, its line ends, and its place."""
    line = end[: len(end) // 2]
    raw = line.join((": ping", "event: message", 'data: {"text":"a"}', "id: 7")).encode() + end.encode()
    assert (
        replaced(raw + b"data: [DONE]" + end.encode()) == raw.replace(b'"a"', b'"A"') + b"data: [DONE]" + end.encode()
    )


def test_data_on_several_lines_become_one() -> None:
    """As an event stream may have them."""
    assert replaced(b'data: {"text":\ndata: "a"}\nid: 7\n\n') == b'data: {"text":"A"}\nid: 7\n\n'


def test_token_probabilities_can_be_taken_away() -> None:
    """Wherever an API has them; nothing else goes with them."""
    value = {
        "choices": [{"logprobs": {"content": [{"token": "x", "bytes": [120]}]}, "text": "x"}],
        "prompt_logprobs": [1],
    }
    block = Block(b"data: x\n\n", value)
    without_logprobs(block)
    assert block.changed
    assert block.value == {"choices": [{"logprobs": None, "text": "x"}], "prompt_logprobs": None}
    unchanged = Block(b"x", {"logprobs": None})
    without_logprobs(unchanged)
    assert not unchanged.changed
