"""The simulator's tokenizer: a token is a fixed number of UTF-8 bytes, so counting costs nothing and decoding is exact.

Owns that rule. Pure. ``routes`` calls it for /tokenize and /detokenize; ``ask`` counts by the same rule.
"""

from collections.abc import Iterable


def token_ids(text: str, bytes_per_token: int) -> list[int]:
    """One id a token: its bytes behind a marker byte, as a big-endian number."""
    raw = text.encode("utf-8", "surrogatepass")
    return [
        int.from_bytes(b"\1" + raw[start : start + bytes_per_token]) for start in range(0, len(raw), bytes_per_token)
    ]


def text_of(ids: Iterable[int]) -> str:
    """The text of these ids; ids that this tokenizer never gives become the replacement character."""
    raw = bytearray()
    for value in ids:
        piece = value.to_bytes(max(1, (value.bit_length() + 7) // 8)) if value >= 0 else b""
        raw += piece[1:] if piece[:1] == b"\1" and len(piece) > 1 else "�".encode()
    return raw.decode("utf-8", "replace")
