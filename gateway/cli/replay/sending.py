"""Requests to pools, bounded, and their answers as bytes with times.

Owns the HTTP client. Answers are held up to a bound; a pool that fails is data, never an exception. Called by
``quantgate replay``.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import aiohttp
import msgspec
import orjson

from gateway.cli.replay.given import PATHS, Item
from gateway.core.sse import Scanner, answer_info, came_at_once
from gateway.model.enums import Api

ANSWER_MOST_BYTES = 8 * 1024 * 1024
_USAGE_PATHS = frozenset({PATHS[Api.CHAT.value], PATHS[Api.COMPLETIONS.value]})
MARK = {"x-quantgate-replay": "1"}


class Target(msgspec.Struct, frozen=True):
    """A pool to send to. ``urls`` take turns; ``model`` replaces the body's; ``models`` maps names that clients use to
    the pool's own, and wins. ``stream_usage``: it takes the wish for usage in a stream.
    """

    name: str
    urls: tuple[str, ...]
    model: str | None = None
    models: dict[str, str] = {}
    authorization: str | None = None
    stream_usage: bool = True


class Reply(msgspec.Struct, frozen=True):
    """What a pool answered. ``status`` 0 = nothing came; ``error`` says why then. Times in seconds, -1 = unknown.

    ``ttft_s`` and ``per_token_s`` are of streams alone, as in the gateway's records; ``tokens`` as the pool tells them.
    """

    status: int
    raw: bytes = b""
    error: str = ""
    first_s: float = -1.0
    total_s: float = -1.0
    ttft_s: float = -1.0
    per_token_s: float = -1.0
    tokens: int = -1

    @property
    def good(self) -> bool:
        """It answered."""
        return self.status == 200 and not self.error


class Pace:
    """How an answer comes: when its first content, and how fast its tokens. Moments are readings of one clock."""

    def __init__(self, body: dict[str, Any], began: float) -> None:
        self._began = began
        self._scanner = Scanner() if body.get("stream") is True else None
        self._several = isinstance(body.get("prompt"), list) or body.get("n") not in (None, 1)
        self._first = self._content = self._last = 0.0
        self._events = 0  # when the first content had come

    def see(self, part: bytes, now: float) -> None:
        """More of the answer."""
        self._first = self._first or now
        self._last = now
        if self._scanner is not None:
            self._scanner.feed(part)
            if self._scanner.content and not self._content:
                self._content, self._events = now, self._scanner.events

    def reply(self, status: int, raw: bytes, now: float) -> Reply:
        """The answer at its end."""
        tokens, ttft_s, per_token_s = -1, -1.0, -1.0
        if self._scanner is None:
            tokens = answer_info(raw).completion_tokens
        else:
            tokens = self._scanner.info().completion_tokens
            ttft_s = self._content - self._began if self._content else -1.0
            at_once = came_at_once(self._scanner.events - self._events, tokens)
            if self._content and tokens > 1 and not (self._several or at_once):
                per_token_s = (self._last - self._content) / (tokens - 1)
        first_s = self._first - self._began if self._first else -1.0
        return Reply(status, raw, "", first_s, now - self._began, ttft_s, per_token_s, tokens)


class Sender:
    """Sends one request to one target. ``timeout_s`` bounds a whole answer."""

    def __init__(self, timeout_s: float, connections: int) -> None:
        self._timeout_s = timeout_s
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._turns = 0

    async def __aenter__(self) -> "Sender":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            auto_decompress=True,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, item: Item, target: Target) -> Reply:
        """The answer, whatever it is."""
        assert self._session is not None  # noqa: S101 - a context manager
        self._turns += 1
        url = target.urls[self._turns % len(target.urls)].rstrip("/") + item.path
        headers = {"Content-Type": "application/json", **MARK}
        if target.authorization is not None:
            headers["Authorization"] = target.authorization
        body = body_for(item, target)
        pace = Pace(body, time.monotonic())
        try:
            async with self._session.post(url, data=orjson.dumps(body), headers=headers) as answer:
                parts: list[bytes] = []
                size = 0
                async for part in answer.content.iter_any():
                    pace.see(part, time.monotonic())
                    parts.append(part)
                    size += len(part)
                    if size > ANSWER_MOST_BYTES:
                        return Reply(answer.status, error="the answer is longer than 8 MiB")
                return pace.reply(answer.status, b"".join(parts), time.monotonic())
        except TimeoutError:
            return Reply(0, error=f"no whole answer within {self._timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as error:
            cause = getattr(error, "os_error", None) or error
            return Reply(0, error=getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)


def body_for(item: Item, target: Target) -> dict[str, Any]:
    """The body with the model's name as the target knows it, and usage asked for in a stream that says nothing of it,
    as the gateway does; nothing else is changed."""
    body = item.body
    named = body.get("model")
    model = target.models.get(named) if isinstance(named, str) else None
    model = model or target.model
    if model is not None:
        body = {**body, "model": model}
    if target.stream_usage and item.path in _USAGE_PATHS and body.get("stream") is True:
        options = body.get("stream_options") or {}
        if isinstance(options, dict) and options.get("include_usage") is None:
            body = {**body, "stream_options": {**options, "include_usage": True}}
    return body


async def send_all(sender: Sender, item: Item, targets: Sequence[Target], first: int) -> list[Reply]:
    """One request to each target, one after another from ``first`` on, so that no pool is always warmed by another."""
    replies: dict[int, Reply] = {}
    for step in range(len(targets)):
        index = (first + step) % len(targets)
        replies[index] = await sender.send(item, targets[index])
    return [replies[index] for index in range(len(targets))]


async def bounded(sender: Sender, items: Sequence[Item], targets: Sequence[Target], at_once: int, done: Any) -> None:
    """Every item to every target, ``at_once`` items at a time; ``done(item, replies)`` as they come."""
    waiting = list(reversed(list(enumerate(items))))

    async def one() -> None:
        while waiting:
            index, item = waiting.pop()
            done(item, await send_all(sender, item, targets, index))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(one())
