"""What is answered without a request to any pool: liveness, OPTIONS, unknown paths and methods, and the CORS fields."""

from collections.abc import Mapping

from gateway.core import openai
from gateway.dataplane.answers import JSON
from gateway.dataplane.feedback import PATH
from gateway.errors import ApiError
from gateway.model.table import Settings
from gateway.wire.http import Request
from gateway.wire.server import ServerConnection

METHODS = b"GET, POST, OPTIONS"
_ALIVE = (b"/health", b"/healthz", b"/ping")


def answer_other(connection: ServerConnection, request: Request, path: bytes, cors: bytes) -> None:
    """Paths and methods without an exchange: liveness and OPTIONS. Raises ``ApiError``: 404 and 405."""
    known = _allowed_method(path)
    if path in _ALIVE and request.method in (b"GET", b"HEAD"):
        connection.answer(200, JSON + cors, b'{"status":"ok"}')
        return
    if request.method == b"OPTIONS":
        allow = b"Allow: %b\r\n" % f"{known or 'GET, POST'}, OPTIONS".encode()
        connection.answer(204, allow + cors + _preflight(request, cors), b"")
        return
    if known:
        allowed = f"{known}, OPTIONS"
        message = f"This path takes {allowed}, not {request.method.decode('latin-1')}."
        raise ApiError(405, "method_not_allowed", message, headers=(("Allow", allowed),))
    shown = path.decode("latin-1")[:200]
    raise ApiError(404, "unknown_path", f"There is no {shown} here. Does the base URL end in /v1?")


def _allowed_method(path: bytes) -> str | None:
    """What a path takes; None for one that nothing serves."""
    if path == PATH:
        return "POST"
    return "GET, HEAD" if path in _ALIVE else openai.allowed_method(path.decode("latin-1"))


def cors_of(settings: Settings, fields: Mapping[bytes, bytes]) -> bytes:
    """The CORS lines of an answer to a request with these fields; none unless the policy lists origins."""
    origins = settings.cors_origins
    return cors_fields(fields.get(b"origin"), origins) if origins else b""


def cors_fields(origin: bytes | None, origins: tuple[str, ...]) -> bytes:
    """Header lines that let a page of one of the policy's origins read the answer."""
    if origin is None:
        return b""
    if "*" in origins:
        return b"Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *\r\n"
    if origin.decode("latin-1") in origins:
        return b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\nAccess-Control-Expose-Headers: *\r\n" % origin
    return b"Vary: Origin\r\n"


def _preflight(request: Request, cors: bytes) -> bytes:
    if b"Allow-Origin" not in cors:
        return b""
    asked = request.fields.get(b"access-control-request-headers") or b"authorization, content-type"
    return (
        b"Access-Control-Allow-Methods: %b\r\nAccess-Control-Allow-Headers: %b\r\nAccess-Control-Max-Age: 600\r\n"
        % (METHODS, asked)
    )
