"""Errors that reach a person or a client, as values.

``ApiError`` is everything the gateway itself answers on the API, in OpenAI's shape. ``PolicyError`` is one
finding in a policy file, with its place and its mend. Nothing here does I/O or knows who raises it.
"""

from collections.abc import Sequence

import msgspec
import orjson

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    417: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
    502: "upstream_error",
    503: "service_unavailable",
    504: "timeout_error",
}


class ApiError(Exception):
    """An answer of the gateway itself: ``{"error": {"message", "type", "param", "code"}}`` with a status.

    ``code`` is a closed, machine-readable word (``model_not_found``, ``rate_limit_exceeded`` …); ``param`` names the
    offending request field. ``headers`` are added to the answer (``Retry-After`` …). ``close`` asks the wire to close
    the connection after it, because the rest of the input cannot be trusted.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = tuple(headers)
        self.close = close

    def body(self) -> bytes:
        """The JSON body, UTF-8."""
        return error_body(self.status, self.code, self.message, self.param)


def error_body(status: int, code: str | int, message: str, param: str | None = None) -> bytes:
    """OpenAI's error object as JSON bytes; also the payload of an in-stream error event."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


class PolicyError(msgspec.Struct, frozen=True):
    """One finding in a policy: where it is, what is wrong, how to mend it. ``line`` and ``column`` are 1-based."""

    file: str
    line: int
    column: int
    message: str
    mend: str = ""
    severity: str = "error"  # error | warning

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"
        return f"{text} ({self.mend})" if self.mend else text


class PolicyRejectedError(Exception):
    """The whole policy set is rejected; ``findings`` holds every error found, in file order."""

    def __init__(self, findings: Sequence[PolicyError]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings) or "policy rejected")
        self.findings = tuple(findings)
