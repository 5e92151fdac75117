"""Message content in parts: strings, text blocks, images, audio, tool results, in the spellings of all three chat APIs.

A block of an unknown type passes untouched and counts for nothing.
"""

from typing import Any, Final

from gateway.core.openai.fields import wrong
from gateway.core.openai.gather import clip

_TEXT: Final = frozenset(("text", "input_text", "output_text", "refusal"))
_IMAGE: Final = frozenset(("image_url", "input_image", "image"))
_AUDIO: Final = frozenset(("input_audio", "audio_url", "audio"))


class Thread:
    """What one pass over ``messages`` finds."""

    __slots__ = ("audio", "first", "images", "last", "loop", "parts", "system", "turns")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.system: list[str] = []
        self.first: str | None = None
        self.last = ""
        self.turns = 0
        self.images = 0
        self.audio = False
        self.loop = False

    def say(self, text: str) -> None:
        """One more user message."""
        self.turns += 1
        self.last = text
        if self.first is None:
            self.first = text

    def rest(self) -> None:
        """A message that is no tool result ends what came before it as a tool loop."""
        self.loop = False


def blocks(content: Any, param: str, thread: Thread) -> str:
    """Counts the parts of one message into ``thread`` and returns their text joined."""
    if type(content) is not list:
        raise wrong(param, "a string or an array of parts")
    found: list[str] = []
    for index, block in enumerate(content):
        if type(block) is str:
            found.append(block)
            continue
        if type(block) is not dict:
            raise wrong(f"{param}[{index}]", "an object")
        kind = block.get("type")
        if type(kind) is not str:
            if kind is not None:
                raise wrong(f"{param}[{index}].type", "a string")
            kind = "text" if "text" in block else ""
        if kind in _TEXT:
            text = block.get("refusal" if kind == "refusal" else "text")
            if type(text) is str:
                found.append(text)
            elif text is not None:
                raise wrong(f"{param}[{index}].text", "a string")
        elif kind in _IMAGE:
            thread.images += 1
        elif kind in _AUDIO:
            thread.audio = True
    thread.parts += found
    return found[0] if len(found) == 1 else "\n".join([clip(piece) for piece in found])
