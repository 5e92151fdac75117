"""The admin port's answers: ETags, errors, cursors."""

import json

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.answers import body_answer, cursor_of, error_answer, json_answer, read_cursor


def asking(etag: str = "") -> object:
    return make_mocked_request("GET", "/", headers={"If-None-Match": etag} if etag else {})


def test_who_has_the_bytes_gets_none() -> None:
    """An ETag of the bytes themselves: equal answers are 304, others are sent."""
    first = json_answer({"a": 1}, asking())
    again = json_answer({"a": 1}, asking(first.headers["ETag"]))
    other = json_answer({"a": 2}, asking(first.headers["ETag"]))
    assert (first.status, again.status, other.status) == (200, 304, 200)
    assert again.body is None
    assert body_answer(b'{"a":1}', asking(first.headers["ETag"])).status == 304


def test_errors_have_the_apis_shape() -> None:
    """And no ETag."""
    answer = error_answer(400, "invalid_value", "no", "limit")
    assert json.loads(answer.body) == {
        "error": {"message": "no", "type": "invalid_request_error", "param": "limit", "code": "invalid_value"}
    }


@given(st.integers(0, 2**59))
def test_a_cursor_reads_back(row_id: int) -> None:
    """Opaque, and safe in a URL."""
    word = cursor_of(row_id)
    assert read_cursor(word) == row_id
    assert word.replace("-", "").replace("_", "").isalnum()


@given(st.text(max_size=20))
def test_any_other_word_is_refused(word: str) -> None:
    """With words, never with a fault of ours."""
    try:
        assert cursor_of(read_cursor(word)) == word
    except ValueError as error:
        assert "next_cursor" in str(error)


@pytest.mark.parametrize("word", ["", "abc", "aWQ6", "aWQ6LTE", "aWQ6MTIzNDU2Nzg5MDEyMzQ1Njc4OTA"])
def test_near_misses_are_refused(word: str) -> None:
    """No number, a negative one, one beyond any row."""
    with pytest.raises(ValueError, match="next_cursor"):
        read_cursor(word)
