"""Reading the database for the admin API: in threads, with the API's own words when it cannot be read.

Owns what its handlers share: the guard around them, parameters, pages. Called by ``admin`` and the ``api_`` modules.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from aiohttp import web
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.answers import error_answer, read_cursor, refusal
from gateway.control.archive import Archive
from gateway.errors import ApiError
from gateway.store.selecting import PAGE_MOST

Answer = TypeVar("Answer")
Handler = Callable[[web.Request], Awaitable[web.Response]]


class NoDatabaseError(Exception):
    """Records cannot be read now."""


def engine_of(archive: Archive) -> Engine:
    """The open database. Raises ``NoDatabaseError``."""
    if archive.engine is None:
        raise NoDatabaseError(archive.error or "the database is not open yet")
    return archive.engine


async def read(archive: Archive, ask: Callable[..., Answer], *arguments: Any) -> Answer:
    """Ask the database in a thread. Raises ``NoDatabaseError``."""
    engine = engine_of(archive)
    try:
        return await asyncio.to_thread(ask, engine, *arguments)
    except SQLAlchemyError as error:
        raise NoDatabaseError(type(error).__name__) from error


def guarded(handler: Handler, parameters: frozenset[str] = frozenset()) -> Handler:
    """The handler with the API's words for what may go wrong in it; its query holds no other parameters than those."""

    async def answer(request: web.Request) -> web.Response:
        try:
            known(request, parameters)
            return await handler(request)
        except ApiError as error:
            return refusal(error)
        except NoDatabaseError as error:
            return error_answer(503, "no_database", f"Records cannot be read: {error}.")
        except TimeoutError:
            return error_answer(503, "too_long", "It took too long. Ask for a shorter span.")
        except ValueError as error:
            return error_answer(400, "invalid_value", str(error))

    return answer


def known(request: web.Request, parameters: frozenset[str]) -> None:
    """A parameter that does not exist is refused, for it would be silently ignored otherwise."""
    unknown = set(request.query) - parameters
    if unknown:
        words = f"known: {', '.join(sorted(parameters))}" if parameters else "this path takes none"
        raise ValueError(f"unknown parameter {sorted(unknown)[0]}; {words}")


def page_of(query: Mapping[str, str]) -> tuple[int | None, int]:
    """The row to begin before, and how many. Raises ``ValueError``."""
    limit = query.get("limit", "100")
    if not limit.isdigit() or not 1 <= int(limit) <= PAGE_MOST:
        raise ValueError(f"limit must be a number from 1 to {PAGE_MOST}")
    return read_cursor(query["cursor"]) if "cursor" in query else None, int(limit)


def flag_of(query: Mapping[str, str], name: str) -> bool:
    """A yes or no, no where it is left out. Raises ``ValueError``."""
    word = query.get(name, "0")
    if word not in ("1", "true", "0", "false"):
        raise ValueError(f"{name} must be 1, true, 0 or false")
    return word in ("1", "true")


def as_text(data: bytes) -> dict[str, str]:
    """Text where it is text."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
