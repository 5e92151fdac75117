"""Answers in the shape of the legacy completions API, whole or as chunks.

Owns that JSON. Pure. ``routes`` calls ``whole`` and ``events``.
"""

from collections.abc import Iterator

import orjson

from gateway.simulator.answer import Answer, Choice
from gateway.simulator.ask import Ask
from gateway.simulator.chat import usage_of
from gateway.simulator.frame import DONE, Frame, interleaved, with_tail


def _text(choice: Choice, ask: Ask) -> str:
    return ask.echo + "".join(choice.reasoning) + choice.text


def whole(answer: Answer, ask: Ask, frame: Frame) -> bytes:
    """The body of an unstreamed answer."""
    choices = [
        {
            "index": index,
            "text": _text(choice, ask),
            "logprobs": None,
            "finish_reason": choice.finish,
            "stop_reason": None,
            "token_ids": None,
            "prompt_logprobs": None,
            "prompt_token_ids": None,
        }
        for index, choice in enumerate(answer.choices)
    ]
    return orjson.dumps(
        {
            "id": f"cmpl-{frame.id}",
            "object": "text_completion",
            "created": frame.created,
            "model": frame.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": frame.fingerprint,
            "usage": usage_of(answer, frame),
            "kv_transfer_params": None,
        }
    )


def events(answer: Answer, ask: Ask, frame: Frame) -> Iterator[bytes]:
    """The stream, one item a decode step."""
    head = b'data: {"id":"cmpl-%b","object":"text_completion","created":%d,"model":%b,"choices":[' % (
        frame.id.encode(),
        frame.created,
        orjson.dumps(frame.model),
    )
    tail = b""
    if ask.include_usage:
        tail = head + b'],"usage":' + orjson.dumps(usage_of(answer, frame)) + b"}\n\n"
    if frame.done:
        tail += DONE
    runs = (_choice_events(head, index, choice, ask) for index, choice in enumerate(answer.choices))
    return with_tail(interleaved(runs), tail)


def _choice_events(head: bytes, index: int, choice: Choice, ask: Ask) -> Iterator[bytes]:
    start = head + b'{"index":%d,"text":' % index
    rest = b',"logprobs":null,"finish_reason":%b,"stop_reason":null,"token_ids":null}]}\n\n'
    going, ended = rest % b"null", rest % (b'"%b"' % choice.finish.encode())
    pieces = [*((ask.echo,) if ask.echo else ()), *choice.reasoning, *choice.pieces]
    for piece in pieces[:-1]:
        yield start + orjson.dumps(piece) + going
    last = start + orjson.dumps(pieces[-1]) + going if pieces else b""
    yield last + start + b'""' + ended
