"""Messages whose head is the one before, but for the digits of its length.

A client that keeps its connection open sends the same head with each request, and an endpoint the same one with each
answer of a second; only Content-Length moves. Such a message, when it lies whole in one read, needs no parser: the
parser has accepted this head, strictly, and the digits of one decimal length are all that is new. Everything else
(another byte anywhere, a body that comes in pieces, chunks) goes to the parser.
"""

import re
from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from gateway.wire.http import AnswerHead

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})\r\n", re.IGNORECASE)
_DIGITS_MOST: Final = 9
_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
# Lines without a secret: a target without a query, and fields that say what a client is and not who.
_OPEN_LINE = re.compile(
    rb"[A-Z]+ [^ ?]+ HTTP/1\.[01]\Z|\Z|(?:host|connection|content-type|content-length|user-agent"
    rb"|accept(?:-encoding|-language)?|x-stainless-[a-z-]+):",
    re.IGNORECASE,
)
_ZERO: Final = 48
_same_secret: Final[Callable[[bytes, bytes], bool]] = compare_digest


class Template:
    """One head, cut around the digits of its length.

    ``secret``: a client's head holds keys, and strangers may share a connection behind a proxy, so the lines that may
    hold one are equal in constant time or not at all. A pool's holds none of others.
    """

    __slots__ = ("_after", "_at", "_begin", "_end", "_from", "_secret", "_secret_after", "_to")

    def __init__(self, before: bytes, after: bytes, *, secret: bool) -> None:
        self._at = len(before)
        self._from, self._to = secret_span(before) if secret else (self._at, self._at)
        self._begin = before[: self._from]
        self._secret = before[self._from : self._to]
        self._end = before[self._to :]
        self._after = after
        self._secret_after = secret and secret_span(after) != (0, 0)

    def body_at(self, data: bytes) -> int:
        """Where the body begins if ``data`` is exactly one message with this head, else -1."""
        at, size = self._at, len(data)
        end, length = at, 0
        while end < size and end - at < _DIGITS_MOST:
            digit = data[end] - _ZERO
            if digit < 0 or digit > 9:
                break
            length = 10 * length + digit
            end += 1
        start = end + len(self._after)
        if end == at or size - start != length:
            return -1
        return start if self._is_head(data, at, data[end:start]) else -1

    def _is_head(self, data: bytes, at: int, after: bytes) -> bool:
        if self._secret_after:
            if not _same_secret(after, self._after):
                return False
        elif after != self._after:
            return False
        if not data.startswith(self._begin) or data[self._to : at] != self._end:
            return False
        return self._from == self._to or _same_secret(data[self._from : self._to], self._secret)


def secret_span(head: bytes) -> tuple[int, int]:
    """From the first to the last line of a piece of a head that may hold a secret; (0, 0) if none may."""
    first = last = at = 0
    for line in head.split(_LINE_END):
        if _OPEN_LINE.match(line) is None:
            first = first if last else at
            last = at + len(line)
        at += len(line) + len(_LINE_END)
    return first, last


def template_of(data: bytes, *, secret: bool) -> Template | None:
    """The template of the head that ``data`` begins with; None if it has not exactly one plain length.

    Only for a head that the parser took for a message framed by its length.
    """
    end = data.find(_HEAD_END)
    if end < 0:
        return None
    head = data[: end + 4]
    found = _LENGTH.search(head)
    if found is None or head.lower().count(b"\r\ncontent-length") != 1:
        return None
    return Template(head[: found.start(1)], head[found.end(1) :], secret=secret)


class Learning:
    """When to look for a template: not for ever with a peer whose every head is another one."""

    __slots__ = ("_misses", "_secret", "template")

    def __init__(self, *, secret: bool) -> None:
        self.template: Template | None = None
        self._secret = secret
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
        template = template_of(data, secret=self._secret)
        self.template = template if template is not None and template.body_at(data) >= 0 else None
        return self.template is not None


class KnownAnswers:
    """The head that the answers of one endpoint had last; its connections share it."""

    __slots__ = ("head", "learning")

    def __init__(self) -> None:
        self.head: AnswerHead | None = None
        self.learning = Learning(secret=False)
