"""A running gateway's admin port, asked from the command line: address, operator's token, one request.

Owns how it is reached and the words when it is not. What the answer means is the caller's. Called by ``stored`` (and so
by ``report``, ``record``, ``diff``) and by ``rollout``.
"""

import http.client
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import orjson

from gateway.policy.secret import secrets_of

TOKEN = "QUANTGATE_TOKEN"  # noqa: S105 - the name of a variable
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
    parts = urlsplit(admin if "://" in admin else f"http://{admin}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UnreachableError(f"--admin {admin} is no address. Write HOST:PORT or a URL.")
    sent = dict(headers or {})
    if body is not None:
        sent["Content-Type"] = "application/json"
    if token:
        sent["Authorization"] = f"Bearer {token}"
    target = f"{parts.path.rstrip('/')}{path}{f'?{urlencode(query)}' if query else ''}"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
    try:
        connection.request(method, target, orjson.dumps(body) if body is not None else None, sent)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or error
        raise UnreachableError(f"Nothing answers at --admin {admin}: {why}.") from None
    finally:
        connection.close()
