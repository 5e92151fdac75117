"""OpenAI's streams of audio and of transcripts: no names of events, no [DONE], an end of their own."""

import asyncio
from typing import Any

import orjson

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import Plane, Reply, Upstream
from tests.unit.dataplane.test_relay import playing

USAGE = {"input_tokens": 3, "output_tokens": 9, "total_tokens": 12}
SPEECH = {"model": "m", "input": "hello", "voice": "x", "stream_format": "sse"}
FORM = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n\x00\x01\r\n'
    b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--x\r\nContent-Disposition: form-data; name="stream"\r\n\r\ntrue\r\n--x--\r\n'
)


def _event(kind: str, **more: Any) -> bytes:
    return b"data: %b\n\n" % orjson.dumps({"type": kind, **more})


async def _transcribe(plane: Plane) -> Reply:
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
    head = "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: g\r\nConnection: close\r\n"
    head += f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(FORM)}\r\n\r\n"
    writer.write(head.encode() + FORM)
    async with asyncio.timeout(5):
        data = await reader.read()
    writer.close()
    return Reply(data)


async def test_speech_as_events(make: Make, first: Upstream) -> None:
    """It is asked for by ``stream_format``, and nobody is to blame for streaming then."""
    parts = [_event("speech.audio.delta", audio="AAAA")] * 3 + [_event("speech.audio.done", usage=USAGE)]
    first.script = playing(*parts)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await plane.ask(SPEECH, "/v1/audio/speech")
    assert (reply.status, reply.body) == (200, b"".join(parts))
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.completion_tokens) == ("ok", 9)
    assert outcome.ttft_s >= 0.0


async def test_a_streamed_transcript(make: Make, first: Upstream) -> None:
    """Its last event ends it, however long the text in it is: nothing is added, and the pool is not to blame."""
    words = [_event("transcript.text.delta", delta="word ")] * 4
    parts = [*words, _event("transcript.text.done", text="word " * 2_000, usage=USAGE)]
    first.script = playing(*parts)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await _transcribe(plane)
    assert (reply.status, reply.body) == (200, b"".join(parts))
    assert (await plane.outcome()).kind.result == "ok"
    first.script = playing(*words)  # type: ignore[assignment]
    assert b"upstream_truncated" in (await _transcribe(plane)).body
    assert (await plane.outcome(2)).kind.result == "upstream_truncated"
