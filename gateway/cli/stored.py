"""Where commands read stored evidence: a database, a state directory, or a running gateway's admin port.

Owns finding and opening them, and the words when that fails. Called by ``report``, ``record`` and ``replay``.
"""

import http.client
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import orjson
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.policy.secret import SecretError, secrets_of
from gateway.store.engine import StoreError, open_reader, url_of
from gateway.store.migrate import require_current

ADMIN_S = 300.0  # a report over millions of rows takes its time


class StoredError(Exception):
    """The evidence cannot be had; the message says why and what to do."""


def open_database(database: str | None, state_dir: Path) -> Engine:
    """The database by URL (or a reference to it), else the file of a state directory. Raises ``StoredError``."""
    try:
        if database is not None and database.startswith(("env:", "file:")):
            database = secrets_of(os.environ, Path.cwd())(database)
        engine = open_reader(url_of(database, state_dir))
        require_current(engine)
    except (StoreError, SecretError) as error:
        raise StoredError(str(error)) from None
    except SQLAlchemyError as error:
        raise StoredError(f"The database cannot be read: {said(error)}") from None
    return engine


def said(error: Exception) -> str:
    """A driver's own words in one line, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0][:300]


def ask_admin(
    admin: str, path: str, query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """GET from the admin port (HOST:PORT or URL). Raises ``StoredError`` with the gateway's own words."""
    parts = urlsplit(admin if "://" in admin else f"http://{admin}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StoredError(f"--admin {admin} is no address. Write HOST:PORT or a URL.")
    target = f"{parts.path.rstrip('/')}{path}{f'?{urlencode(query)}' if query else ''}"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=ADMIN_S, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=ADMIN_S)
    try:
        connection.request("GET", target, headers=dict(headers or {}))
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise StoredError(f"Nothing answers at --admin {admin}: {getattr(error, 'strerror', None) or error}.") from None
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise StoredError(f"The gateway at {admin} says {answer.status}: {_message(body)}")
    return body


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
