"""Transcription."""

import json

import pytest

from gateway.simulator.ask import BadAskError
from gateway.simulator.audio import Recording, read_form, transcript, transcription

FORM = (
    b'--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n'
    b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    b"\x00\x01\r\n--A\r\n\x02\r\n"
    b"--B--\r\n"
)


def test_form_is_read() -> None:
    """Fields and sound come out as they went in, also where the sound holds line ends."""
    recording = read_form('multipart/form-data; boundary="B"', FORM)
    assert recording.fields == {"model": "whisper"}
    assert recording.sound == b"\x00\x01\r\n--A\r\n\x02"


@pytest.mark.parametrize(("kind", "body"), [("application/json", b"{}"), ("multipart/form-data; boundary=B", b"--B--")])
def test_form_without_sound_is_refused(kind: str, body: bytes) -> None:
    """What holds no file is said."""
    with pytest.raises(BadAskError):
        read_form(kind, body)


def test_length_follows_the_sound() -> None:
    """Twice the sound, twice the words; the byte rate of a RIFF header is believed."""
    short, long = Recording(b"x" * 320_000, {}), Recording(b"x" * 640_000, {})
    assert (short.seconds, len(transcript(short, 0)) * 2) == (10.0, len(transcript(long, 0)))
    riff = Recording(b"RIFF" + b"\0" * 24 + (8_000).to_bytes(4, "little") + b"\0" * 15_968, {})
    assert riff.seconds == 2.0
    assert transcript(short, 0) == transcript(short, 0)
    assert transcript(short, 0) != transcript(short, 1)


def test_response_formats() -> None:
    """text is plain, verbose_json has segments, json has the text and the duration as usage."""
    for wanted, kind in (("text", "text/plain"), ("verbose_json", "application/json"), ("json", "application/json")):
        recording = Recording(b"x" * 64_000, {"response_format": wanted})
        body, content_type = transcription(recording, ["Hello", "."])
        assert content_type.startswith(kind)
        if wanted == "text":
            assert body == b"Hello.\n"
        else:
            found = json.loads(body)
            assert (found["text"], found["usage"]["seconds"]) == ("Hello.", 2)
            assert ("segments" in found) == (wanted == "verbose_json")
