"""Content parts of the three chat APIs."""

from typing import Any

import pytest

from gateway.core.openai.content import Thread, blocks
from gateway.errors import ApiError


def walked(content: Any) -> tuple[str, Thread]:
    """The joined text, and what was counted."""
    thread = Thread()
    return blocks(content, "messages[0].content", thread), thread


@pytest.mark.parametrize("kind", ["text", "input_text", "output_text"])
def test_text_kinds(kind: str) -> None:
    """Text is text in every API's spelling."""
    text, thread = walked([{"type": kind, "text": "a"}, {"type": kind, "text": "b"}])
    assert text == "a\nb"
    assert thread.parts == ["a", "b"]


def test_refusals_bare_strings_and_untyped_text() -> None:
    """A refusal in the history, a bare string and a part without a type are text too."""
    text, _ = walked([{"type": "refusal", "refusal": "no"}, "bare", {"text": "untyped"}])
    assert text == "no\nbare\nuntyped"


@pytest.mark.parametrize(
    ("block", "images", "audio"),
    [
        ({"type": "image_url", "image_url": {"url": "data:"}}, 1, False),
        ({"type": "input_image"}, 1, False),
        ({"type": "image", "source": {}}, 1, False),
        ({"type": "input_audio"}, 0, True),
        ({"type": "audio_url"}, 0, True),
    ],
)
def test_images_and_audio_are_counted(block: dict[str, Any], images: int, audio: bool) -> None:
    """They steer the route and the estimate, though they hold no text."""
    _, thread = walked([block])
    assert (thread.images, thread.audio, thread.parts) == (images, audio, [])


def test_unknown_blocks_and_null_text_pass() -> None:
    """A runtime's own block is forwarded and counts for nothing."""
    text, thread = walked([{"type": "x_vendor", "text": 3}, {"type": "text", "text": None}, {}])
    assert (text, thread.parts) == ("", [])


def test_many_long_blocks_are_sliced_when_joined() -> None:
    """The joined text is for the classifier, so each piece of it is bounded; the parts stay whole."""
    text, thread = walked([{"type": "text", "text": "x" * 50_000}, {"type": "text", "text": "tail"}])
    assert len(text) < 25_000
    assert text.endswith("tail")
    assert len(thread.parts[0]) == 50_000


def test_not_an_array() -> None:
    """An object in place of the array is a 400 with the field's name."""
    with pytest.raises(ApiError) as caught:
        walked({"type": "text", "text": "x"})
    assert caught.value.param == "messages[0].content"
