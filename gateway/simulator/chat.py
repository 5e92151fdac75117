"""Answers in the shape of the chat completions API, whole or as chunks, as vLLM 0.32 sends them.

Owns that JSON. Pure. ``routes`` calls ``whole`` and ``events``.
"""

from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import orjson

from gateway.simulator.answer import Answer, Call, Choice
from gateway.simulator.ask import Ask
from gateway.simulator.frame import DONE, Frame, data_event, interleaved, with_tail


def usage_of(answer: Answer, frame: Frame, completion: int | None = None) -> dict[str, Any]:
    """The usage object; ``completion`` overrides the count while a stream runs."""
    done = answer.completion_tokens if completion is None else completion
    usage: dict[str, Any] = {
        "prompt_tokens": answer.prompt_tokens,
        "total_tokens": answer.prompt_tokens + done,
        "completion_tokens": done,
        "prompt_tokens_details": {"cached_tokens": frame.cached_tokens},
    }
    if answer.reasoning_tokens:
        usage["completion_tokens_details"] = {"reasoning_tokens": answer.reasoning_tokens}
    return usage


def _logprob(piece: str, wanted: int) -> dict[str, Any]:
    """A plausible log-probability; equal pieces get equal numbers."""
    chosen = -(crc32(piece.encode()) % 997) / 1000
    entry = {"token": piece, "logprob": chosen, "bytes": list(piece.encode())}
    others = [
        {"token": f" {rank}", "logprob": chosen - 0.7 * rank - 0.1, "bytes": list(f" {rank}".encode())}
        for rank in range(1, wanted)
    ]
    return {**entry, "top_logprobs": [entry, *others][:wanted]}


def _call_body(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def whole(answer: Answer, ask: Ask, frame: Frame) -> bytes:
    """The body of an unstreamed answer."""
    choices = []
    for index, choice in enumerate(answer.choices):
        message: dict[str, Any] = {
            "role": "assistant",
            "content": choice.text if choice.pieces or not choice.calls else None,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "tool_calls": [_call_body(call) for call in choice.calls],
            "reasoning": "".join(choice.reasoning) or None,
        }
        logprobs = (
            None if ask.logprobs is None else {"content": [_logprob(piece, ask.logprobs) for piece in choice.pieces]}
        )
        choices.append(
            {
                "index": index,
                "message": message,
                "logprobs": logprobs,
                "finish_reason": choice.finish,
                "stop_reason": None,
                "token_ids": None,
            }
        )
    return orjson.dumps(
        {
            "id": f"chatcmpl-{frame.id}",
            "object": "chat.completion",
            "created": frame.created,
            "model": frame.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": frame.fingerprint,
            "usage": usage_of(answer, frame),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
        }
    )


def events(answer: Answer, ask: Ask, frame: Frame) -> Iterator[bytes]:
    """The stream, one item a decode step. The last holds finish_reason, the usage chunk if asked for, and [DONE]."""
    head = b'data: {"id":"chatcmpl-%b","object":"chat.completion.chunk","created":%d,"model":%b,' % (
        frame.id.encode(),
        frame.created,
        orjson.dumps(frame.model),
    )
    head += b'"system_fingerprint":"%b","choices":[' % frame.fingerprint.encode()
    tail = b""
    if ask.include_usage:
        tail = head + b'],"usage":' + orjson.dumps(usage_of(answer, frame)) + b"}\n\n"
    if frame.done:
        tail += DONE

    def usage(number: int) -> bytes:
        if not ask.continuous_usage:
            return b""
        return b',"usage":' + orjson.dumps(usage_of(answer, frame, number))

    runs = (
        _choice_events(choice, head + b'{"index":%d,"delta":' % index, ask.logprobs, usage)
        for index, choice in enumerate(answer.choices)
    )
    return with_tail(interleaved(runs), tail)


def _choice_events(
    choice: Choice, start: bytes, wanted_logprobs: int | None, usage: Callable[[int], bytes]
) -> Iterator[bytes]:
    """The chunks of one choice, one item a token; the role comes with the first, the finish reason with the last."""

    def event(number: int, delta: bytes, finish: bytes = b"null", logprobs: bytes = b"null") -> bytes:
        rest = b',"logprobs":%b,"finish_reason":%b,"token_ids":null}]%b}\n\n' % (logprobs, finish, usage(number))
        return start + delta + rest

    step, number = event(0, b'{"role":"assistant","content":""}'), 0
    for delta, piece in _deltas(choice):
        if number:
            yield step
            step = b""
        number += 1
        logprobs = b"null"
        if wanted_logprobs is not None and piece is not None:
            logprobs = orjson.dumps({"content": [_logprob(piece, wanted_logprobs)]})
        step += event(number, delta, logprobs=logprobs)
    yield step + event(number, b"{}", b'"%b"' % choice.finish.encode())


def _deltas(choice: Choice) -> Iterator[tuple[bytes, str | None]]:
    """One delta a token, with the piece of content it holds."""
    dumps = orjson.dumps
    for piece in choice.reasoning:
        yield b'{"reasoning":%b}' % dumps(piece), None
    for piece in choice.pieces:
        yield b'{"content":%b}' % dumps(piece), piece
    for index, call in enumerate(choice.calls):
        function = {"name": call.name, "arguments": ""}
        yield dumps({"tool_calls": [{"id": call.id, "type": "function", "index": index, "function": function}]}), None
        for piece in call.arguments:
            yield b'{"tool_calls":[{"index":%d,"function":{"arguments":%b}}]}' % (index, dumps(piece)), None


def error_event(message: str, code: int) -> bytes:
    """An error object inside a running stream, as vLLM sends it when its engine dies."""
    return data_event({"error": {"message": message, "type": "InternalServerError", "param": None, "code": code}})
