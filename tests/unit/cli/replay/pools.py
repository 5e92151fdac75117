"""Pools on loopback for tests of replays: they answer as told, and remember what they were asked."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

Answering = Callable[[dict[str, Any]], tuple[int, str]]


class PoolServer:
    """One pool. ``answering`` gives status and text for a body; ``most_at_once`` is the most requests seen together."""

    def __init__(self, answering: Answering, delay_s: float = 0.0) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self.url = ""
        self._answering = answering
        self._delay_s = delay_s
        self._now = 0

    async def handle(self, request: web.Request) -> web.Response:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        body = await request.json()
        self.asked.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        await asyncio.sleep(self._delay_s)
        self._now -= 1
        status, text = self._answering(body)
        if status != 200:
            return web.Response(status=status, text=text)
        if body.get("stream"):
            chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
            return web.Response(text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")
        message = {"role": "assistant", "content": text}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


@contextmanager
def serving(*pools: PoolServer) -> Iterator[None]:
    """Serve them in a thread of their own, as commands run a loop themselves."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runners = [asyncio.run_coroutine_threadsafe(_start(pool), loop).result(10) for pool in pools]
    yield
    for runner in runners:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


async def _start(pool: PoolServer) -> web.AppRunner:
    application = web.Application()
    application.router.add_post("/{tail:.*}", pool.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pool.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    return runner


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """A chat body."""
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
