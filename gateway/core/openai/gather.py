"""What is taken from prompt text: its size, bounded slices for the classifier, marks of structure, a digest.

Slices are bounded so that no later step depends on a body's size; ``parts`` are references, never copies.
"""

import re
from hashlib import blake2b
from typing import Final
from zlib import crc32

HEAD_CHARS: Final = 16_384
TAIL_CHARS: Final = 4_096
_KEY_CHARS: Final = 4_096
_NAME_MOST_CHARS: Final = 256  # a longer model name is nobody's, and is not kept
_SEPARATOR_ROW: Final = re.compile(r"\|\s{0,8}:?-{3,}|-{3,}:?\s{0,8}\|")
_CITATION: Final = re.compile(r"\[(?:\d{1,3}|doc(?:ument)?\s?\d{1,3}|source\s?\d{1,3})\]|【\d{1,3}", re.IGNORECASE)
_REMEMBERED_MOST: Final = 4_096
_remembered: Final[dict[tuple[str, int, int, int, int], bytes]] = {}
_checksum: Final = crc32
_fresh: Final = blake2b(digest_size=16).copy  # a third of what a new one costs, whose keywords are read each time


def clip(text: str) -> str:
    """The head and tail of a long text: instructions stand at either end, pasted material in the middle."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    return f"{text[:HEAD_CHARS]}\n{text[-TAIL_CHARS:]}"


def join(pieces: list[str]) -> str:
    """The system texts together, bounded by the head's length."""
    if not pieces:
        return ""
    text = pieces[0] if len(pieces) == 1 else "\n".join([piece[:HEAD_CHARS] for piece in pieces])
    return text if len(text) <= HEAD_CHARS else text[:HEAD_CHARS]


def size_bytes(parts: list[str]) -> int:
    """All text as UTF-8 bytes."""
    total = 0
    for part in parts:
        total += len(part) if part.isascii() else len(part.encode())
    return total


def marks(text: str) -> tuple[bool, bool, bool]:
    """(code fence, markdown table, citations) in a bounded text. One-character searches rule most texts out."""
    fence = "`" in text and "```" in text
    table = "|" in text and _SEPARATOR_ROW.search(text) is not None
    cited = ("[" in text or "【" in text) and _CITATION.search(text) is not None
    return fence, table, cited


def conversation_of(
    session: bytes | None, cache_key: object, user: object, *, model: str, system: str, first: str
) -> tuple[bytes, bool]:
    """A stable digest of the conversation, and whether the client named it itself.

    ``session`` is the explicit hint, then the body's ``prompt_cache_key`` and ``user``; without any the model and the
    first messages tell conversations apart, because later turns only append to them.
    """
    if session:
        seed = b"s" + session
    elif cache_key and type(cache_key) is str:
        seed = b"k" + cache_key.encode()
    elif user and type(user) is str:
        seed = b"u" + user.encode()
    else:
        return _of_texts(model, system, first), False
    return _digest(seed), True


def _of_texts(model: str, system: str, first: str) -> bytes:
    """The digest of a conversation that is known by its beginning, which every turn of it brings along again.

    This process's own hash of the texts finds it again; it differs from process to process, so the digest is made of
    a checksum. A collision of either only makes two conversations share their place.
    """
    head, opening = system[:_KEY_CHARS], first[:_KEY_CHARS]
    known = (model, hash(head), hash(opening), len(system), len(first))
    digest = _remembered.get(known)
    if digest is None:
        mark = _checksum(opening.encode(), _checksum(head.encode()))
        digest = _digest(b"m%b\0%d.%d.%d" % (model.encode(), mark, len(system), len(first)))
        if len(model) <= _NAME_MOST_CHARS:
            if len(_remembered) >= _REMEMBERED_MOST:
                _remembered.clear()
            _remembered[known] = digest
    return digest


def _digest(seed: bytes) -> bytes:
    hashed = _fresh()
    hashed.update(seed)
    return hashed.digest()
