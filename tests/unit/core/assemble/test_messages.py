"""The messages API, as a body and as a stream."""

import json

from gateway.core.assemble import ToolCall, assemble
from gateway.model.enums import Api
from tests.unit.core.assemble.streams import stream


def test_messages_api() -> None:
    """Content blocks, thinking, tool input and stop reasons, as a body and as a stream."""
    body = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "t"},
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 4, "output_tokens": 2},
    }
    events = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 4}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "t"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hi"}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "u", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    request = {"system": "s", "messages": []}
    whole, streamed = assemble(request, json.dumps(body).encode()), assemble(request, stream(*events, done=False))
    assert whole.choices == streamed.choices
    assert (ToolCall("f", '{"a":1}', "u"),) == whole.choices[0].tool_calls
    assert (
        whole.choices[0].reasoning,
        whole.choices[0].text,
        whole.choices[0].finish_reason,
    ) == ("t", "hi", "tool_calls")
    assert whole.usage == streamed.usage
    assert streamed.done
    assert streamed.api == Api.MESSAGES
