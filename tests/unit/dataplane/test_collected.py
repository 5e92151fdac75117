"""Which whole answers are answers: told by their ends, their type and the API, before any of them goes on."""

import pytest

from gateway.core.answer import answer_info
from gateway.dataplane.answers import Passed
from gateway.dataplane.collected import cut_off, fault_of, gave_up, is_error
from gateway.model.enums import Api
from gateway.wire.http import AnswerHead, Headers

GOOD = b'{"choices": [], "usage": {"prompt_tokens": 1}}'


def passed(*headers: tuple[bytes, bytes]) -> Passed:
    given: Headers = list(headers)
    return Passed(AnswerHead(200, given))


PLAIN = passed((b"content-type", b"application/json"))
HTML = passed((b"content-type", b"Text/HTML; charset=utf-8"))


def fault(body: bytes, head: Passed = PLAIN, api: Api = Api.CHAT, *, stream: bool = False) -> str:
    return fault_of(body, answer_info(body), head, api, stream=stream)


@pytest.mark.parametrize("api", [api for api in Api if api is not Api.AUDIO])
@pytest.mark.parametrize("head", [PLAIN, HTML, passed()], ids=["json", "html", "untyped"])
def test_what_is_no_json_is_no_answer(api: Api, head: Passed) -> None:
    """Of no API but audio, whatever the pool calls it."""
    for body in (b"", b"<html></html>", GOOD[:20], b"null"):
        assert fault(body, head, api)
    assert not fault(GOOD, head, api)
    assert not fault(b'[{"index": 0}]', head, api)


@pytest.mark.parametrize(
    "head",
    [
        passed((b"content-type", b"application/json"), (b"content-encoding", b"gzip")),
        passed((b"content-type", b"application/octet-stream")),
        passed((b"content-type", b"multipart/mixed; boundary=x")),
    ],
    ids=["compressed", "bytes", "parts"],
)
def test_what_is_no_text_is_not_judged(head: Passed) -> None:
    """Compressed answers and embeddings as bytes are for the client to read."""
    assert not fault(b"\x1f\x8b\x08", head, Api.EMBEDDINGS)
    assert not cut_off(b"\x1f\x8b\x08", head, Api.EMBEDDINGS)


def test_audio_answers_are_anything() -> None:
    """Subtitles, sound, and JSON where a stream was asked for."""
    assert not fault(b"WEBVTT", passed((b"content-type", b"text/vtt")), Api.AUDIO)
    assert not fault(GOOD, api=Api.AUDIO, stream=True)
    assert not cut_off(b"WEBVTT", passed(), Api.AUDIO)


def test_a_whole_answer_is_no_stream() -> None:
    """SDKs that wait for events would see an empty answer; where the stream only has a wrong type they read it."""
    assert fault(GOOD, stream=True)
    assert not fault(b"\ndata: {}\n\ndata: [DONE]\n\n", stream=True)
    assert fault(b"data: {}\n\n")


def test_long_answers_are_known_by_their_end() -> None:
    """Only the close ended them, and so did it end one that was cut."""
    assert cut_off(b'"text": "to be con', PLAIN, Api.CHAT)
    assert not cut_off(b"]}\n", PLAIN, Api.CHAT)
    assert not cut_off(b'"x": 1}]', PLAIN, Api.RERANK)


@pytest.mark.parametrize(
    ("body", "api", "error"),
    [
        (b'{"error": {"message": "x"}}', Api.CHAT, True),
        (b'{"type": "error", "error": {"type": "overloaded_error"}}', Api.MESSAGES, True),
        (b'{"error": "x"}', Api.EMBEDDINGS, True),
        (b'{"object": "response", "status": "failed", "error": {"code": "x"}}', Api.RESPONSES, False),
        (b'{"object": "response", "status": "completed", "error": null}', Api.RESPONSES, False),
        (b'{"error": "x"}', Api.AUDIO, False),
        (GOOD, Api.CHAT, False),
    ],
)
def test_errors_under_a_200(body: bytes, api: Api, error: bool) -> None:
    """An object that is an error alone; a response that failed is a response."""
    assert is_error(answer_info(body), api) is error


@pytest.mark.parametrize(
    ("body", "up"),
    [
        (b'{"choices": [{"finish_reason": "abort"}]}', True),
        (b'{"choices": [{"finish_reason": "error"}]}', True),
        (b'{"object": "response", "status": "failed", "error": {"code": "x"}}', True),
        (b'{"choices": [{"finish_reason": "length"}]}', False),
        (b'{"choices": [{"finish_reason": "content_filter"}]}', False),
        (b'{"data": []}', False),
    ],
)
def test_answers_that_were_given_up(body: bytes, up: bool) -> None:
    """By their own word: what the model or the limit ended is whole."""
    assert gave_up(answer_info(body)) is up
