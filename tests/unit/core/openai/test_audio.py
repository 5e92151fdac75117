"""Audio: forms are routed by their ``model`` field, speech by its JSON."""

import pytest

from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api

TYPE = "multipart/form-data; boundary=xyz"


def body(**fields: str) -> bytes:
    """A form with a file and these fields."""
    file = (
        b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + b"\x00\xff" * 500 + b"\r\n"
    )
    rest = "".join(
        f'--xyz\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    return file + rest.encode() + b"--xyz--\r\n"


@pytest.mark.parametrize(
    ("stream", "wanted"), [("true", True), ("True", True), ("1", True), ("false", False), ("", False)]
)
def test_transcription(stream: str, wanted: bool) -> None:
    """Model and stream are found beside the file, which is not prompt text."""
    reading = read(Api.AUDIO, body(model="whisper", stream=stream, prompt="Names: Åsa"), TYPE)
    facts = reading.facts
    assert (facts.model, facts.stream, facts.audio, facts.max_output_tokens) == ("whisper", wanted, True, 0)
    assert (facts.text_bytes, reading.texts.parts) == (len("Names: Åsa".encode()), ("Names: Åsa",))


def test_no_prompt() -> None:
    """Most transcriptions have no text at all."""
    facts = read(Api.AUDIO, body(model="whisper"), TYPE).facts
    assert (facts.text_bytes, facts.stream) == (0, False)


def test_faults() -> None:
    """A missing model and an odd stream value are named."""
    with pytest.raises(ApiError) as caught:
        read(Api.AUDIO, body(stream="true"), TYPE)
    assert caught.value.code == "missing_model"
    with pytest.raises(ApiError) as caught:
        read(Api.AUDIO, body(model="whisper", stream="maybe"), TYPE)
    assert caught.value.param == "stream"


def test_speech() -> None:
    """Speech is JSON with text in ``input``."""
    facts = read(Api.AUDIO, b'{"model":"tts","input":"hello","voice":"x"}').facts
    assert (facts.model, facts.text_bytes, facts.audio, facts.stream) == ("tts", 5, False, False)


@pytest.mark.parametrize(("form", "stream"), [("sse", True), ("audio", False)])
def test_speech_as_events(form: str, stream: bool) -> None:
    """``stream_format`` says whether the answer is a stream of events; audio that flows as bytes is none."""
    body = b'{"model":"tts","input":"hello","voice":"x","stream_format":"%b"}' % form.encode()
    assert read(Api.AUDIO, body).facts.stream is stream
