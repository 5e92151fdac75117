"""Messages whose head is the one before, but for the digits of its length.

A client that keeps its connection open sends the same head with each request, and an endpoint the same one with each
answer of a second; only Content-Length moves. Such a message, when it lies whole in one read, needs no parser: the
parser has accepted this head, strictly, and the digits of one decimal length are all that is new. Everything else
(another byte anywhere, a body that comes in pieces, chunks) goes to the parser.
"""

import re
from hmac import compare_digest

from gateway.wire.http import AnswerHead

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})\r\n", re.IGNORECASE)
_DIGITS_MOST = 9


class Template:
    """One head, cut around the digits of its length."""

    __slots__ = ("_after", "_before")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after

    def body_at(self, data: bytes) -> int:
        """Where the body begins if ``data`` is exactly one message with this head, else -1.

        Heads hold keys, and strangers may share a connection behind a proxy: equal in constant time or not at all.
        """
        at = len(self._before)
        end = data.find(b"\r", at, at + _DIGITS_MOST + 1)
        if end <= at or not compare_digest(data[:at], self._before):
            return -1
        digits = data[at:end]
        start = end + len(self._after)
        if not digits.isdigit() or len(data) - start != int(digits):
            return -1
        return start if compare_digest(data[end:start], self._after) else -1


def template_of(data: bytes) -> Template | None:
    """The template of the head that ``data`` begins with; None if it has not exactly one plain length.

    Only for a head that the parser took for a message framed by its length.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = data[: end + 4]
    found = _LENGTH.search(head)
    if found is None or head.lower().count(b"\r\ncontent-length") != 1:
        return None
    return Template(head[: found.start(1)], head[found.end(1) :])


class Learning:
    """When to look for a template: not for ever with a peer whose every head is another one."""

    __slots__ = ("_misses", "template")

    def __init__(self) -> None:
        self.template: Template | None = None
        self._misses = 0

    def hit(self) -> None:
        """The template served."""
        self._misses = 0

    def learn(self, data: bytes) -> bool:
        """A message came that no template fits, parsed from ``data`` alone. Whether there is a new template now."""
        self._misses += 1
        if self._misses > 8 and self._misses % 64:
            self.template = None
            return False
        template = template_of(data)
        self.template = template if template is not None and template.body_at(data) >= 0 else None
        return self.template is not None


class KnownAnswers:
    """The head that the answers of one endpoint had last; its connections share it."""

    __slots__ = ("head", "learning")

    def __init__(self) -> None:
        self.head: AnswerHead | None = None
        self.learning = Learning()
