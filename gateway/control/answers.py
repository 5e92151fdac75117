"""Answers of the admin port: JSON with an ETag, errors in the API's shape, cursors of pages.

Owns their form; the handlers in ``admin`` and the ``api_`` modules own what is in them.
"""

import base64
import binascii
import hashlib

import orjson
from aiohttp import web

from gateway.errors import ApiError, error_body


def json_answer(value: object, request: web.Request | None = None, status: int = 200) -> web.Response:
    """JSON with an ETag of its bytes; 304 if the caller has them."""
    return body_answer(orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS), request, status)


def body_answer(body: bytes, request: web.Request | None = None, status: int = 200) -> web.Response:
    """The same for JSON that is encoded already."""
    response = web.Response(body=body, status=status, content_type="application/json")
    if request is not None and status == 200:
        etag = hashlib.sha256(body).hexdigest()[:32]
        response.etag = etag
        if any(tag.value in (etag, "*") for tag in request.if_none_match or ()):
            unchanged = web.Response(status=304)
            unchanged.etag = etag
            return unchanged
    return response


def error_answer(status: int, code: str, message: str, param: str | None = None) -> web.Response:
    """An error in OpenAI's shape."""
    body = error_body(status, code, message, param)
    return web.Response(body=body, status=status, content_type="application/json")


def refusal(error: ApiError) -> web.Response:
    """The answer to an ``ApiError``, with its headers."""
    answer = error_answer(error.status, error.code, error.message, error.param)
    answer.headers.update(error.headers)
    return answer


def cursor_of(row_id: int) -> str:
    """An opaque word for "after this row". Rows that come later do not move it."""
    return base64.urlsafe_b64encode(f"id:{row_id}".encode()).decode().rstrip("=")


def read_cursor(word: str) -> int:
    """The row of a cursor. Raises ``ValueError``."""
    try:
        text = base64.urlsafe_b64decode(word.encode("ascii") + b"=" * (-len(word) % 4)).decode("ascii")
    except (binascii.Error, UnicodeError):
        text = ""
    number = text.removeprefix("id:")
    if not number.isdigit() or len(number) > 18 or cursor_of(int(number)) != word:
        raise ValueError("cursor must be the next_cursor of an earlier page")
    return int(number)
