"""A deliberately cheap OpenAI-compatible backend: canned bytes, so that what stands in front of it is the bottleneck.

    python -m benchmarks.backend PORT

A streamed request sets its own pace by ``"user":"EVENTSxMILLISECONDS"`` (default 64x0), so one backend serves every
phase of a comparison. Answers nothing but what the contenders and their health checks ask for.
"""

import argparse
import asyncio
import json
import re

import uvloop

REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hello world " * 10},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
    }
).encode()
MODELS = json.dumps(
    {
        "object": "list",
        "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "bench", "max_model_len": 131072}],
    }
).encode()
INFO = b'{"model_path":"m","served_model_name":"m"}'
EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}\n\n'
)
LAST = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n'
)
USAGE = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
    b'"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}\n\n'
)
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
PACE = re.compile(rb'"user": ?"(\d+)x(\d+)"')


def plain(body: bytes) -> bytes:
    """A whole JSON answer."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n" % len(data) + data + b"\r\n"


PLAIN_REPLY = plain(REPLY)
CHUNK = chunk(EVENT)


class Backend(asyncio.Protocol):
    """One connection. Requests on it come one after another."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            body = self._take_body(head, end + 4)
            if body is None:
                return
            self._answer(head, body)

    def _take_body(self, head: bytes, start: int) -> bytes | None:
        """The body that follows the head, taken out of the buffer; None if it is not whole yet."""
        low = head.lower()
        at = low.find(b"content-length:")
        if at >= 0:
            stop = low.find(b"\r\n", at)
            end = start + int(low[at + 15 : stop if stop > 0 else None])
            if len(self._buffer) < end:
                return None
            body, self._buffer = self._buffer[start:end], self._buffer[end:]
            return body
        if b"transfer-encoding: chunked" in low:
            stop = self._buffer.find(b"0\r\n\r\n", start)
            if stop < 0:
                return None
            body, self._buffer = self._buffer[start:stop], self._buffer[stop + 5 :]
            return body
        self._buffer = self._buffer[start:]
        return b""

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self._transport.write(plain(MODELS if b"/v1/models" in head[:40] else INFO))
        elif b'"stream":true' in body or b'"stream": true' in body:
            pace = PACE.search(body)
            events, gap_s = (int(pace[1]), int(pace[2]) / 1000) if pace else (64, 0.0)
            stream = self._stream(events, gap_s, b"include_usage" in body)
            self._task = asyncio.get_running_loop().create_task(stream)
        else:
            self._transport.write(PLAIN_REPLY)

    async def _stream(self, events: int, gap_s: float, usage: bool) -> None:
        self._transport.write(STREAM_HEAD)
        for _ in range(events):
            self._transport.write(CHUNK)
            await asyncio.sleep(gap_s)
        tail = LAST + (USAGE % (events, events + 10) if usage else b"") + DONE
        self._transport.write(chunk(tail) + b"0\r\n\r\n")


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    uvloop.run(main(parser.parse_args().port))
