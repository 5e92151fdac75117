"""Real pages of real runtimes (``tests/data/runtimes``), and a short way to make answers of them."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from gateway.runtimes.adapter import Answer, Answers

DATA = Path(__file__).resolve().parents[2] / "data" / "runtimes"


@pytest.fixture(scope="session")
def dump() -> Callable[[str], bytes]:
    """Read a recorded page by its file name."""

    def read(name: str) -> bytes:
        return (DATA / name).read_bytes()

    return read


@pytest.fixture(scope="session")
def answers() -> Callable[..., Answers]:
    """Make answers by path: bytes or a JSON value = 200, a number = that status, an ``Answer`` as it is."""

    def make(pages: dict[str, object]) -> Answers:
        made: dict[str, Answer] = {}
        for path, page in pages.items():
            if isinstance(page, Answer):
                made[path] = page
            elif isinstance(page, bytes):
                made[path] = Answer(200, page)
            elif isinstance(page, int):
                made[path] = Answer(page)
            else:
                made[path] = Answer(200, orjson.dumps(page))
        return made

    return make
