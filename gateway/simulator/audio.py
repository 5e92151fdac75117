"""Transcription: reads the multipart form, answers with text whose length follows the sound's.

Owns the form and that API's JSON. Pure. ``routes`` calls it.
"""

from hashlib import blake2b
from math import ceil
from random import Random

import msgspec
import orjson

from gateway.simulator.ask import BadAskError
from gateway.simulator.prose import prose

_BYTES_PER_SECOND = 32_000  # 16 kHz, 16 bit, mono: what the service asks for
_WORDS_PER_SECOND = 2.5
_TOPICS = ("meeting", "budget", "customer", "delivery", "weather", "project")


class Recording(msgspec.Struct, frozen=True):
    """A form with its sound. ``fields`` are the other form fields."""

    sound: bytes
    fields: dict[str, str]

    @property
    def seconds(self) -> float:
        """Length of the sound; the byte rate of a RIFF header is believed, else 16 kHz mono is assumed."""
        rate = int.from_bytes(self.sound[28:32], "little") if self.sound[:4] == b"RIFF" else 0
        return max(0.1, len(self.sound) / (rate or _BYTES_PER_SECOND))


def read_form(content_type: str, body: bytes) -> Recording:
    """The recording in a multipart form. Raises ``BadAskError`` if there is none."""
    _, _, boundary = content_type.partition("boundary=")
    boundary = boundary.split(";")[0].strip().strip('"')
    if not boundary:
        raise BadAskError("Expected a multipart/form-data body", "file")
    sound: bytes | None = None
    fields: dict[str, str] = {}
    for part in body.split(b"--" + boundary.encode()):
        head, found, content = part.partition(b"\r\n\r\n")
        if not found:
            continue
        name = _parameter(head, b"name")
        content = content.removesuffix(b"\r\n")
        if name == "file":
            sound = content
        elif name:
            fields[name] = content.decode("utf-8", "replace")
    if sound is None:
        raise BadAskError("Field required: file", "file")
    return Recording(sound, fields)


def _parameter(head: bytes, name: bytes) -> str:
    for piece in head.replace(b"\r\n", b";").split(b";"):
        key, _, value = piece.strip().partition(b"=")
        if key == name:
            return value.strip(b'"').decode("utf-8", "replace")
    return ""


def transcript(recording: Recording, seed: int) -> list[str]:
    """What was said, in pieces: a function of the sound and the seed."""
    random = Random(int.from_bytes(blake2b(recording.sound, key=b"%d" % seed, digest_size=8).digest()))  # noqa: S311 - must be repeatable
    return prose(random, _TOPICS, max(3, round(recording.seconds * _WORDS_PER_SECOND)))


def transcription(recording: Recording, pieces: list[str]) -> tuple[bytes, str]:
    """(body, content type) in the response_format asked for."""
    text = "".join(pieces)
    if recording.fields.get("response_format") == "text":
        return text.encode() + b"\n", "text/plain; charset=utf-8"
    usage = {"type": "duration", "seconds": ceil(recording.seconds)}
    answer: dict[str, object] = {"text": text, "usage": usage}
    if recording.fields.get("response_format") == "verbose_json":
        segment = {"id": 0, "seek": 0, "start": 0.0, "end": recording.seconds, "text": text}
        answer |= {"language": "en", "duration": str(recording.seconds), "segments": [segment]}
    return orjson.dumps(answer), "application/json"
