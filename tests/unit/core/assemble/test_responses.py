"""The responses API, as a body, a stream, and a stream that lost its end."""

import json

from gateway.core.assemble import ToolCall, assemble
from tests.unit.core.assemble.streams import stream


def test_responses_api() -> None:
    """Output items as a body, as a stream with its final event, and as a stream that lost it."""
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
    ]
    body = {
        "object": "response",
        "status": "completed",
        "output": items,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    events = [
        {"type": "response.created", "response": {"object": "response", "model": "m"}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "t"},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "hi"},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 2, "item": items[2]},
        {"type": "response.completed", "response": body},
    ]
    whole = assemble({"input": "x"}, json.dumps(body).encode())
    streamed = assemble({"input": "x"}, stream(*events, done=False))
    lost = assemble({"input": "x"}, stream(*events[:-1], done=False))
    assert whole.choices == streamed.choices
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].tool_calls == lost.choices[0].tool_calls == (ToolCall("f", '{"a":1}', "c"),)
    assert lost.truncated
    assert not streamed.truncated
    failed = assemble(
        {"input": "x"},
        json.dumps({"object": "response", "status": "failed", "error": {"code": "e", "message": "m"}}).encode(),
    )
    assert failed.errors[0].code == "e"
    cut = {**body, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert assemble({"input": "x"}, json.dumps(cut).encode()).choices[0].finish_reason == "length"
