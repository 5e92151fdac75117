"""The table of failures is complete and consistent; Retry-After is read in both its forms and never trusted blindly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.retry import MEANINGS, RETRY_AFTER_CAP_S, is_own_fault, of_status, parse_retry_after, status_of_error
from gateway.model.enums import Failure, Result


def test_every_failure_has_a_meaning() -> None:
    """A new failure without a row would be a KeyError on the hot path."""
    assert set(MEANINGS) == set(Failure)


def test_client_errors_are_neutral() -> None:
    """4xx never counts against an endpoint and is never retried (B79, B81)."""
    meaning = MEANINGS[Failure.STATUS_4XX]
    assert (meaning.blame, meaning.again, meaning.result) == (False, False, Result.CLIENT_ERROR)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (200, None),
        (302, Failure.BAD_ANSWER),
        (400, Failure.STATUS_4XX),
        (401, Failure.STATUS_5XX),
        (404, Failure.STATUS_4XX),
        (429, Failure.STATUS_429),
        (500, Failure.STATUS_5XX),
        (501, Failure.STATUS_4XX),
        (599, Failure.STATUS_5XX),
        (600, Failure.BAD_ANSWER),
        (999, Failure.BAD_ANSWER),
    ],
)
def test_statuses(status: int, failure: Failure | None) -> None:
    """Statuses map to failures; a pool's 401 is the gateway's credentials, not the client."""
    assert of_status(status) is failure


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3),
        (" 7 ", 7),
        ("99999999999", RETRY_AFTER_CAP_S),
        ("Wed, 21 Oct 2026 07:28:10 GMT", 10),
        ("Wed, 21 Oct 2020 07:28:00 GMT", 0),
        ("1.5", None),
        ("-1", None),
        ("abc", None),
        ("", None),
    ],
)
def test_b78_retry_after_forms(value: str, seconds: int | None) -> None:
    """Seconds or an HTTP date; others ignored; capped; a past date is now."""
    assert parse_retry_after(value, 1792567680.0) == seconds


@given(st.text(max_size=40))
def test_retry_after_never_raises(value: str) -> None:
    """Whatever a pool sends, reading it gives None or seconds within the cap."""
    seconds = parse_retry_after(value, 1.7e9)
    assert seconds is None or 0 <= seconds <= RETRY_AFTER_CAP_S


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 503}, 503),
        ({"code": "400"}, 400),
        ({"code": 200}, 502),
        ({"code": "1e2"}, 502),
        ({"type": "overloaded_error"}, 503),
        ({"type": "rate_limit_error"}, 429),
        ({"type": "invalid_request_error", "code": None}, 400),
        ({"type": "invalid_request_error", "code": "rate_limit_exceeded"}, 429),
        ({"type": "BadRequestError", "code": 500}, 500),
        ({"type": "error", "code": "server_error"}, 502),
        ({"type": ["x"], "code": {}}, 502),
        ({}, 502),
    ],
)
def test_status_of_an_error_object(error: dict[str, object], status: int) -> None:
    """A number counts before words, the code before the type, and what is not known is the pool's fault."""
    assert status_of_error(error) == status


NAN = "Out of range float values are not JSON compliant: nan"


@pytest.mark.parametrize(
    ("status", "body", "own"),
    [
        (400, {"error": {"message": NAN, "type": "BadRequestError"}}, True),
        (400, {"object": "error", "message": "CUDA error: an illegal memory access was encountered"}, True),
        (400, {"error": "CUDA out of memory. Tried to allocate 2 GiB"}, True),
        (417, {"detail": "anything"}, True),
        (400, {"error": {"message": f"1 validation error: messages.0: {NAN}"}}, False),
        (400, {"error": {"message": "temperature must be above 0"}}, False),
        (400, [NAN], False),
        (404, {"error": {"message": None}}, False),
    ],
)
def test_a_runtimes_own_fault_is_known_under_a_status_that_blames_the_client(
    status: int, body: object, own: bool
) -> None:
    """By the words that its message begins with: those that a client wrote stand further in."""
    assert is_own_fault(status, json.dumps(body).encode()) is own


def test_what_is_no_json_or_endless_blames_nobody_else() -> None:
    """A page of some proxy, a text that is too long to be read."""
    assert not is_own_fault(400, b"CUDA error")
    assert not is_own_fault(400, b'{"message": "CUDA error' + b"x" * 70_000 + b'"}')
