"""What is replayed: requests from a file (bodies a line, or OpenAI's batch format), or stored samples.

Owns reading and opening them; what cannot be replayed is kept with the reason, never dropped silently. Called by
``quantgate replay``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
from sqlalchemy import Engine

from gateway.cli.ask import UnusableError, guessed_path
from gateway.model.enums import Api
from gateway.store import samples
from gateway.store.engine import StoreError
from gateway.store.records import Filter, page
from gateway.store.samples import SampleRow, Sealer, find

PATHS = {
    Api.CHAT.value: "/v1/chat/completions",
    Api.COMPLETIONS.value: "/v1/completions",
    Api.RESPONSES.value: "/v1/responses",
    Api.MESSAGES.value: "/v1/messages",
}


class Item(msgspec.Struct, frozen=True):
    """One request. ``problem`` says why it cannot be sent; ``task`` and ``bucket`` are empty where unknown."""

    id: str
    path: str = ""
    body: dict[str, Any] = {}
    task: str = ""
    bucket: str = ""
    problem: str = ""


def from_file(file: Path) -> list[Item]:
    """Each line a body, ``{"path", "body"}``, or ``{"custom_id", "url", "body"}``. Raises ``OSError``."""
    return [_line(number, line) for number, line in enumerate(file.read_bytes().splitlines(), 1) if line.strip()]


def _line(number: int, line: bytes) -> Item:
    name = f"line-{number}"
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Item(name, problem=f"not JSON: {error}")
    if not isinstance(found, dict):
        return Item(name, problem="not a JSON object")
    body = found.get("body")
    if not isinstance(body, dict):
        return _item(name, "", found)
    wanted = found.get("custom_id")
    path = found.get("url") or found.get("path") or ""
    if found.get("method", "POST") != "POST" or not isinstance(path, str):
        return Item(name, problem="only POST with a path is replayed")
    return _item(wanted if isinstance(wanted, str) else name, path, body)


def _item(name: str, path: str, body: dict[str, Any]) -> Item:
    if not path:
        try:
            path = guessed_path(body)
        except UnusableError as error:
            return Item(name, problem=str(error))
    if path not in PATHS.values():
        return Item(name, path, body, problem=f"{path} generates no answer to compare")
    return Item(name, path, body)


def from_samples(engine: Engine, key: str, *, bucket: str, pool: str, tenant: str, most: int) -> list[Item]:
    """Stored samples, oldest first. Raises ``StoreError`` if the key is unusable or opens none of them."""
    return _opened(engine, key, find(engine, bucket=bucket, pool=pool, tenant=tenant, most=most))


def of_requests(engine: Engine, key: str, request_ids: Sequence[str]) -> list[Item]:
    """The stored samples of these requests, oldest first; those without one say so. Raises as ``from_samples``."""
    rows = samples.of_requests(engine, request_ids)
    kept = {row.request_id for row in rows}
    lost = [Item(name, problem="its texts were not kept, or not until now") for name in request_ids if name not in kept]
    return _opened(engine, key, rows) + lost


def _opened(engine: Engine, key: str, rows: Sequence[SampleRow]) -> list[Item]:
    sealer = Sealer(key)
    items = []
    for row in reversed(rows):
        try:
            sample = sealer.open(row.request_id, row.sealed)
        except StoreError as error:
            items.append(Item(row.request_id, bucket=row.bucket, problem=str(error)))
            continue
        items.append(_of_sample(row.request_id, row.bucket, sample.api, sample.request, _task(engine, row.request_id)))
    if items and all(item.problem and not item.path for item in items):
        raise StoreError(f"None of {len(items)} samples can be opened with this key.")
    return items


def _of_sample(request_id: str, bucket: str, api: str, request: bytes, task: str) -> Item:
    path = PATHS.get(api, "")
    if not path:
        return Item(request_id, f"/{api}", bucket=bucket, problem=f"{api} generates no answer to compare")
    try:
        body = orjson.loads(request)
    except orjson.JSONDecodeError:
        return Item(request_id, path, bucket=bucket, problem="cut at records.samples.most, or redacted beyond JSON")
    return (
        Item(request_id, path, body, task, bucket) if isinstance(body, dict) else Item(request_id, problem="no object")
    )


def _task(engine: Engine, request_id: str) -> str:
    rows = page(engine, Filter(request_id=request_id), most=1)
    return str(rows[0]["task"]) if rows else ""


def sendable(items: list[Item]) -> Iterator[Item]:
    """Those without a problem."""
    return (item for item in items if not item.problem)
