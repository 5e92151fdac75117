"""A running gateway's admin port, asked from the command line: address, operator's token, one request.

Owns how it is reached and the words when it is not. What the answer means is the caller's. Called by ``stored`` (and so
by ``report``, ``record``, ``diff``) and by ``rollout``.
"""

import http.client
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import orjson

from gateway.cli.urls import http_url
from gateway.policy.secret import secrets_of

TOKEN = "QUANTGATE_TOKEN"  # noqa: S105 - the name of a variable
UNAUTHORIZED = 401
TIMEOUT_S = 300.0  # a report over millions of rows takes its time


class UnreachableError(Exception):
    """Nothing answers there, or it is no address; the message says so."""


def token_of(reference: str = "", *, needed: bool = False) -> str:
    """An operator's token by reference, else from the environment; empty if there is none and none is needed.

    Raises ``SecretError`` for a reference, or a token that is needed, that cannot be read.
    """
    if not reference and not needed and not os.environ.get(TOKEN):
        return ""
    return secrets_of(os.environ, Path.cwd())(reference or f"env:{TOKEN}")


def ask(
    admin: str,
    path: str,
    *,
    method: str = "GET",
    query: Mapping[str, str] | None = None,
    body: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    token: str = "",
) -> tuple[int, bytes]:
    """Status and body of one request to HOST:PORT or a URL. Raises ``UnreachableError``."""
    connection, before = _connection(admin)
    sent = dict(headers or {})
    if body is not None:
        sent["Content-Type"] = "application/json"
    if token:
        sent["Authorization"] = f"Bearer {token}"
    target = f"{before}{path}{f'?{urlencode(query)}' if query else ''}"
    try:
        connection.request(method, target, orjson.dumps(body) if body is not None else None, sent)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UnreachableError(f"Nothing answers at --admin {admin}: {why}.") from None
    finally:
        connection.close()


def without_token(status: int, token: str) -> str:
    """What a person at a command line can do about a refusal for want of a token, to go behind the gateway's words."""
    return (
        f" This command sends the token in {TOKEN}, which is not set." if status == UNAUTHORIZED and not token else ""
    )


def _connection(admin: str) -> tuple[http.client.HTTPConnection, str]:
    """A connection that is not open yet, and the path in front of the API's. Raises ``UnreachableError``."""
    parts = http_url(admin if "://" in admin else f"http://{admin}")
    if parts is None:
        raise UnreachableError(f"--admin {admin} is no address. Write HOST:PORT or a URL.")
    host, before = parts.hostname or "", parts.path.rstrip("/")
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=context), before
    return http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S), before
