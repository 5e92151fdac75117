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

from gateway.cli.replay.given import Item

ANSWER_MOST_BYTES = 8 * 1024 * 1024
MARK = {"x-quantgate-replay": "1"}


class Target(msgspec.Struct, frozen=True):
    """A pool to send to. ``urls`` take turns; ``model`` replaces the body's; ``models`` maps names that clients use to
    the pool's own, and wins.
    """

    name: str
    urls: tuple[str, ...]
    model: str | None = None
    models: dict[str, str] = {}
    authorization: str | None = None


class Reply(msgspec.Struct, frozen=True):
    """What a pool answered. ``status`` 0 = nothing came; ``error`` says why then. Times in seconds."""

    status: int
    raw: bytes = b""
    error: str = ""
    first_s: float = -1.0
    total_s: float = -1.0

    @property
    def good(self) -> bool:
        """It answered."""
        return self.status == 200 and not self.error


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
        began = time.monotonic()
        try:
            async with self._session.post(url, data=orjson.dumps(body_for(item, target)), headers=headers) as answer:
                parts: list[bytes] = []
                size, first_s = 0, -1.0
                async for part in answer.content.iter_any():
                    first_s = first_s if parts else time.monotonic() - began
                    parts.append(part)
                    size += len(part)
                    if size > ANSWER_MOST_BYTES:
                        return Reply(answer.status, error="the answer is longer than 8 MiB")
                return Reply(answer.status, b"".join(parts), "", first_s, time.monotonic() - began)
        except TimeoutError:
            return Reply(0, error=f"no whole answer within {self._timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as error:
            cause = getattr(error, "os_error", None) or error
            return Reply(0, error=getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)


def body_for(item: Item, target: Target) -> dict[str, Any]:
    """The body with the model's name as the target knows it; nothing else is changed."""
    named = item.body.get("model")
    model = target.models.get(named) if isinstance(named, str) else None
    model = model or target.model
    return item.body if model is None else {**item.body, "model": model}


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
