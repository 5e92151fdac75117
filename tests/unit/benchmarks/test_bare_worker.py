"""A worker without sockets serves as any other, and what it did not serve is no measurement."""

from pathlib import Path

import pytest

from benchmarks.backend import PLAIN_REPLY
from benchmarks.bare_worker import BareWorker, request


async def ask(folder: Path, answer: bytes) -> BareWorker:
    """A bare worker that passed one answer on."""
    bare = BareWorker(folder)
    bare.offer()
    bare.client.data_received(request(stream=False))
    bare.pool.data_received(answer)
    return bare


async def test_what_was_answered_well_is_counted_once(tmp_path: Path) -> None:
    """One outcome of one request, and none is left."""
    bare = await ask(tmp_path, PLAIN_REPLY)
    (columns,) = bare.take(1)
    assert columns.completion_tokens == [20]
    assert bare.take(0) == []


async def test_a_bad_answer_is_no_measurement(tmp_path: Path) -> None:
    """A pool's refusal is passed on at less cost than an answer, so it ends the program."""
    bare = await ask(tmp_path, PLAIN_REPLY.replace(b"200 OK", b"400 Bad", 1))
    with pytest.raises(SystemExit, match="not answered well"):
        bare.take(1)


async def test_a_request_without_an_end_is_no_measurement(tmp_path: Path) -> None:
    """Half of an answer ends nothing, however often it is measured."""
    bare = await ask(tmp_path, PLAIN_REPLY[:-1])
    with pytest.raises(SystemExit, match="0 of 1 requests"):
        bare.take(1)
