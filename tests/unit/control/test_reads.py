"""What the admin API's handlers share: every failure has an answer in the API's words, and parameters are checked."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from sqlalchemy.exc import OperationalError

from gateway.control.reads import NoDatabaseError, as_text, flag_of, guarded, page_of, read
from gateway.errors import ApiError


async def answered(error: Exception | None, query: str = "") -> tuple[int, Any, web.Response]:
    """What a guarded handler that fails so answers."""

    async def handler(_: web.Request) -> web.Response:
        if error is not None:
            raise error
        return web.json_response({})

    answer = await guarded(handler, frozenset({"limit", "cursor"}))(make_mocked_request("GET", f"/x{query}"))
    assert isinstance(answer.body, bytes)
    return answer.status, orjson.loads(answer.body).get("error", {}).get("code"), answer


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (None, 200, None),
        (NoDatabaseError("gone"), 503, "no_database"),
        (TimeoutError(), 503, "too_long"),
        (ValueError("limit must be a number"), 400, "invalid_value"),
        (ApiError(404, "no_incident", "None."), 404, "no_incident"),
    ],
)
async def test_what_goes_wrong_has_an_answer(error: Exception | None, status: int, code: str | None) -> None:
    """In the API's shape, never a page of the server's."""
    assert (await answered(error))[:2] == (status, code)


async def test_what_a_refusal_asks_for_is_in_its_fields() -> None:
    """A caller without a token is told which kind to send."""
    headers = (("WWW-Authenticate", "Bearer"),)
    _, _, answer = await answered(ApiError(401, "missing_token", "Send one.", headers=headers))
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_parameter_that_does_not_exist_is_refused() -> None:
    """It would be ignored in silence; the ones that exist are named."""
    assert (await answered(None, "?limit=1"))[0] == 200
    status, code, answer = await answered(None, "?limt=1")
    assert (status, code) == (400, "invalid_value")
    assert b"known: cursor, limit" in (answer.body or b"")  # type: ignore[operator]


async def test_a_database_that_does_not_answer_is_named_by_its_error() -> None:
    """And one that is not open by what keeps it closed. Its statement is not told: that holds words of callers."""

    def ask(_: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception("locked"))

    opened: Any = SimpleNamespace(engine=object(), error="")
    with pytest.raises(NoDatabaseError, match=r"^OperationalError$"):
        await read(opened, ask)
    closed: Any = SimpleNamespace(engine=None, error="the disk is full")
    with pytest.raises(NoDatabaseError, match="the disk is full"):
        await read(closed, ask)


@pytest.mark.parametrize("limit", ["0", "x", "-1", "100000", ""])
def test_a_page_has_a_bound(limit: str) -> None:
    """A hundred rows where nothing is said."""
    assert page_of({}) == (None, 100)
    assert page_of({"limit": "7"}) == (None, 7)
    with pytest.raises(ValueError, match="limit"):
        page_of({"limit": limit})


def test_a_flag_is_a_word_that_is_known() -> None:
    """A typing error is no "no"."""
    assert [flag_of({"f": word}, "f") for word in ("1", "true", "0", "false")] == [True, True, False, False]
    assert flag_of({}, "f") is False
    with pytest.raises(ValueError, match="f must be"):
        flag_of({"f": "yes"}, "f")


def test_bytes_that_are_no_text_are_told_all_the_same() -> None:
    """An answer may have been cut inside a character."""
    assert as_text("ä".encode()) == {"text": "ä"}
    assert as_text(b"\xc3") == {"base64": "ww=="}
