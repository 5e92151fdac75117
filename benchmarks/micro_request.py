"""Processor time of one request through the worker's own code, without sockets: parse, decide, relay, outcome.

    python -m benchmarks.micro_request [--profile] [--stream] [--cold]

Transports are fakes that swallow what is written, so the number is the interpreter's share alone. Quotes the best of
several rounds, because other load only ever adds. ``--cold`` sweeps the caches between requests, as a core does that
serves a thousand a second and much else, and quotes the median.
"""

import argparse
import asyncio
import cProfile
import gc
import hashlib
import json
import os
import pstats
import random
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.contenders import KEY, POLICY
from benchmarks.instructions import switch
from gateway.dataplane.identity import Keyring
from gateway.dataplane.sizing import Sizes
from gateway.dataplane.worker import Worker, WorkerOptions
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.wire.client import ClientConnection
from gateway.wire.server import ServerConnection

SLOTS = {"tenant:bench": 0, "endpoint:bf16/0": 1, "endpoint:fp8/0": 2, "endpoint:int4/0": 3}


COLD_BYTES = 8 * 1024 * 1024


class FakeTransport:
    def __init__(self):
        self.written = 0

    def write(self, data):
        self.written += len(data)

    def writelines(self, parts):
        self.written += sum(map(len, parts))

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False

    def get_extra_info(self, name):
        return ("127.0.0.1", 1)

    def close(self):
        pass

    abort = pause_reading = resume_reading = close


def request(stream):
    body = {
        "model": "m",
        "max_tokens": 64,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "word " * 100},
        ],
    }
    if stream:
        body["stream"] = True
    raw = json.dumps(body, separators=(",", ":")).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer sk-1234\r\nContent-Length: %d\r\n\r\n" % len(raw)
    ) + raw


REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hello world " * 10}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY
EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}\n\n'
)
LAST = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
    b'"usage":{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19}}\n\ndata: [DONE]\n\n'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n" % len(data) + data + b"\r\n"


def cold(one, count):
    """Median microseconds of ``one`` after the caches were filled with something else."""
    other = bytearray(os.urandom(COLD_BYTES))
    taken = []
    for _ in range(count):
        bytes(other)
        begin = time.perf_counter()
        one()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1e6


def under_callgrind(one, count):
    """Run ``one`` so often while callgrind counts, after it has run often enough to be as it always is."""
    for _ in range(100):
        one()
    gc.collect()
    gc.freeze()
    switch("on")
    for _ in range(count):
        one()
    switch("off")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("--profile", "--stream", "--cold", "--counted"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=3000)
    return parser.parse_args()


async def main():
    args = arguments()
    folder = Path(tempfile.mkdtemp())
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    (folder / "p.yaml").write_text(POLICY.format(backend=9001, digest=digest, checked="0%"))
    loaded = load(folder / "p.yaml")
    options = WorkerOptions(0, 1, "127.0.0.1", 0, folder / "s", folder, 1, "x-")
    worker = Worker(
        options,
        asyncio.get_running_loop(),
        clock=time.monotonic,
        wall=lambda: 0.0,
        rand=random.random,
        secret=lambda _: "",
        log_error=lambda w, e: print(w, repr(e)),
    )
    table = compile_table(loaded.document, 1, SLOTS, lambda _: "")
    worker._apply((table, Keyring(table), Sizes(table)))
    server = ServerConnection(worker.context)
    server.connection_made(FakeTransport())
    upstream = ClientConnection()
    upstream.connection_made(FakeTransport())
    raw = request(args.stream)
    event, last = chunk(EVENT), chunk(LAST) + b"0\r\n\r\n"
    events = 100

    def one():
        upstream.idle_since = time.monotonic()
        for view in worker.fleet.views.values():
            view.connections._idle[:] = [upstream]
        server.data_received(raw)
        if args.stream:
            upstream.data_received(HEAD)
            for _ in range(events):
                upstream.data_received(event)
            upstream.data_received(last)
        else:
            upstream.data_received(ANSWER)

    one()
    print(worker.outcomes.take()[0])
    if args.counted:
        under_callgrind(one, args.count)
        return
    if args.cold:
        print(f"{cold(one, args.count):.1f} us a request with cold caches")
        return
    count = args.count // (30 if args.stream else 1)
    best = 1e9
    for _ in range(args.rounds):
        while len(worker.outcomes):
            worker.outcomes.take()
        begin = time.process_time()
        for _ in range(count):
            one()
        best = min(best, (time.process_time() - begin) / count)
    print(
        f"{best * 1e6:.1f} us a request"
        if not args.stream
        else f"{best * 1e6:.1f} us a stream of {events} events, {best / events * 1e6:.2f} us an event"
    )
    if args.profile:
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(count):
            one()
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    asyncio.run(main())
