"""Where commands read stored evidence: a database, a state directory, or a running gateway's admin port.

Owns finding and opening them, and the words when that fails. Called by ``report``, ``record`` and ``replay``.
"""

import os
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import orjson
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.cli.admin_port import UnreachableError, ask, token_of, without_token
from gateway.policy.secret import SecretError, secrets_of
from gateway.store.engine import StoreError, open_reader, url_of
from gateway.store.migrate import require_current


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
    """GET from the admin port, as the operator of ``QUANTGATE_TOKEN`` if that is set.

    Raises ``StoredError`` with the gateway's own words.
    """
    try:
        token = token_of()
        status, body = ask(admin, path, query=query, headers=headers, token=token)
    except (UnreachableError, SecretError) as error:
        raise StoredError(str(error)) from None
    if status != HTTPStatus.OK:
        raise StoredError(f"The gateway at {admin} says {status}: {_message(body)}{without_token(status, token)}")
    return body


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
