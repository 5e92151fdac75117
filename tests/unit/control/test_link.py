"""The unix socket: who may speak, in what order, and what happens when they stop."""

import asyncio
import stat

import pytest

from gateway.control import link as link_module
from gateway.control.link import Link
from gateway.model.messages import Apply, Endpoints, Outcomes
from tests.unit.dataplane.outcome_values import sent


class Heard:
    """A handler that remembers."""

    def __init__(self):
        self.joined, self.left, self.batches, self.gauges, self.answers = [], [], [], [], []

    def worker_joined(self, link):
        self.joined.append(link)

    def worker_left(self, link):
        self.left.append(link)

    def prepared(self, link, message):
        self.answers.append((link.index, message))

    def outcomes(self, link, message):
        self.batches.append((link.index, message))

    def stats(self, link, message):
        self.gauges.append((link.index, message))


@pytest.fixture
async def heard():
    return Heard()


@pytest.fixture
async def listening(tmp_path, heard):
    made = Link(tmp_path / "s", heard)
    await made.start()
    yield made
    await made.stop(0.5)


async def test_messages_reach_the_handler_in_order(listening, heard, stub_worker, outcome, *, stats, eventually):
    """What one worker sends arrives in the order it was sent, with the worker's index."""
    stub = await stub_worker(2).dial(listening.path)
    for number in range(50):
        stub.send(Outcomes(2, number, sent(outcome(status=number))))
    stub.send(stats(2, generation=9))
    await eventually(lambda: bool(heard.gauges))
    assert [message.dropped for _, message in heard.batches] == list(range(50))
    assert {index for index, _ in heard.batches} == {2}
    assert listening.workers[2].generation == 9
    stub.close()


async def test_the_socket_is_private_and_replaces_a_stale_one(tmp_path, heard, stub_worker, eventually):
    """A control that was killed leaves a socket file; the next one listens all the same."""
    path = tmp_path / "s"
    for _ in range(2):
        await Link(path, heard).start()  # never stopped, as after kill -9
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    stub = await stub_worker().dial(path)
    await eventually(lambda: bool(heard.joined))
    stub.close()


async def test_a_returning_worker_replaces_its_former_connection(listening, heard, stub_worker, eventually):
    """One index, one link: the old connection is cut and told as left before the new one joins."""
    first = await stub_worker(0, 1).dial(listening.path)
    await eventually(lambda: len(heard.joined) == 1)
    second = await stub_worker(0, 5).dial(listening.path)
    await eventually(lambda: len(heard.joined) == 2)
    await first.until(lambda: first.gone)
    assert [link.generation for link in heard.left] == [1]
    assert listening.workers[0].generation == 5
    second.close()
    await eventually(lambda: len(heard.left) == 2)
    assert listening.workers == {}


@pytest.mark.parametrize(
    "noise",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x02\xc1\xc1", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"],
)
async def test_a_peer_that_speaks_nonsense_is_cut_off_alone(listening, heard, stub_worker, noise, eventually):
    """Others are not disturbed."""
    good = await stub_worker(1).dial(listening.path)
    reader, writer = await asyncio.open_unix_connection(str(listening.path))
    writer.write(noise)
    assert await reader.read() == b""
    writer.close()
    await eventually(lambda: bool(heard.joined))
    assert [link.index for link in heard.joined] == [1]
    listening.broadcast(Apply(3))
    await good.until(lambda: Apply(3) in good.received)
    good.close()


async def test_a_second_hello_ends_the_connection(listening, heard, stub_worker, eventually):
    """A worker does not change who it is."""
    stub = await stub_worker(0).dial(listening.path)
    await eventually(lambda: bool(heard.joined))
    stub.send(link_module.Hello(1, 1, 1))
    await stub.until(lambda: stub.gone)
    await eventually(lambda: len(heard.left) == 1)
    assert listening.workers == {}


async def test_broadcast_reaches_every_worker(listening, heard, stub_worker, eventually):
    """One message, encoded once, to all."""
    stubs = [await stub_worker(index).dial(listening.path) for index in range(3)]
    await eventually(lambda: len(heard.joined) == 3)
    listening.broadcast(Endpoints([]))
    for stub in stubs:
        await stub.until(lambda stub=stub: Endpoints([]) in stub.received)
        stub.close()


async def test_a_worker_that_does_not_read_is_cut_off(listening, heard, eventually, monkeypatch):
    """Control's memory for a stuck worker is bounded."""
    monkeypatch.setattr(link_module, "BACKLOG_MOST_BYTES", 100_000)
    reader, writer = await asyncio.open_unix_connection(str(listening.path), limit=1)
    writer.write(link_module.frames.encode(link_module.Hello(0, 1, 0)))
    await eventually(lambda: bool(heard.joined))
    stuck = heard.joined[0]
    reader._transport.pause_reading()
    for _ in range(400):
        stuck.send_frame(b"x" * 10_000)
    await eventually(lambda: bool(heard.left))
    assert listening.workers == {}
    writer.close()


async def test_stopping_reads_what_workers_sent_last(listening, heard, stub_worker, outcome, eventually):
    """Outcomes sent just before a worker ends are recorded although control is told to stop meanwhile."""
    stub = await stub_worker(0).dial(listening.path)
    await eventually(lambda: bool(heard.joined))
    for _ in range(500):
        stub.send(Outcomes(0, 0, sent(*[outcome()] * 20)))
    stopping = asyncio.ensure_future(listening.stop(5.0))
    await stub._writer.drain()
    stub._writer.close()
    await stopping
    assert len(heard.batches) == 500
    assert not listening.path.exists()
