"""A worker's life: it starts from the snapshot, shares its port, drains, and says what it holds."""

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from gateway.dataplane.board import Board
from gateway.dataplane.worker import QUEUED_TICK_S, listen_socket
from gateway.model.messages import Prepare
from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.outcome_values import opened
from tests.unit.dataplane.plane import CHAT, Plane, Upstream, policy_of


async def test_it_serves_from_the_snapshot_while_control_is_away(make: Make, first: Upstream, tmp_path: Path) -> None:
    """The last applied generation is on disk: a restarted worker needs nobody."""
    plane = await make({"a": [first.url]})
    from gateway.policy.load import load

    document = load(plane.folder / "policy.yaml").document
    folder = tmp_path / "restarted"
    folder.mkdir()
    (folder / "snapshot.msgpack").write_bytes(msgspec.msgpack.encode(Prepare(41, document, {})))
    other = Plane(folder, policy_of({"a": [first.url]}))
    other.worker.pipeline.current = None
    await other.start()
    assert (await other.ask(CHAT)).status == 200
    assert (await other.outcome()).kind.generation == 41
    await other.stop()


async def test_a_broken_snapshot_is_reported_and_ignored(make: Make, first: Upstream, tmp_path: Path) -> None:
    """A snapshot of another version must not keep a worker from starting."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "snapshot.msgpack").write_bytes(b"\xc1 not msgpack")
    other = await Plane(folder, policy_of({"a": [first.url]})).start()
    assert (await other.ask(CHAT)).status == 200
    assert [type(error).__name__ for error in other.errors] == ["DecodeError"]
    await other.stop()


async def test_draining_finishes_what_runs_and_takes_nothing_new(make: Make, first: Upstream) -> None:
    """The running answer ends whole; the port is closed to new connections; the worker then ends by itself."""
    gate = asyncio.Event()

    async def slow(_body: bytes, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    first.script = slow
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"first_byte": "9s"}}})
    reader, writer = await plane.send(CHAT)
    async with asyncio.timeout(5):
        while not first.bodies:
            await asyncio.sleep(0.005)
    plane.stop_event.set()
    async with asyncio.timeout(5):
        while not plane.worker.context.draining:
            await asyncio.sleep(0.005)
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", plane.port)
    gate.set()
    data = await reader.read()
    writer.close()
    assert data.endswith(b"{}")
    assert b"Connection: close" in data
    await asyncio.wait_for(plane.task, 5)


async def test_stats_tell_pools_endpoints_and_connections(make: Make, first: Upstream) -> None:
    """What control shows of this worker."""
    plane = await make({"a": [first.url]})
    await plane.ask(CHAT)
    stats = plane.worker._stats()
    assert (stats.worker, stats.generation, stats.inflight) == (0, 1, {"a": 0})
    assert [(one.endpoint, one.state, one.idle) for one in stats.endpoints] == [("a/0", "unknown", 1)]


async def test_room_that_another_worker_leaves_is_noticed(first: Upstream, tmp_path: Path) -> None:
    """Nobody tells a worker of it, and no request of its own ends: it looks, and soon while somebody waits."""
    pools = policy_of({"a": [first.url]}, pool={"a": {"limits": {"inflight": 1}}}, gateway={"queue": {"wait": "30s"}})
    plane = await Plane(tmp_path, pools, workers=2).start()
    neighbour = Board(tmp_path / "board-2.bin", 1, 2)
    (view,) = plane.worker.fleet.views.values()
    neighbour.enter(view.row)
    asked = asyncio.create_task(plane.ask(CHAT))
    async with asyncio.timeout(5):
        while not plane.worker.admission.queued:
            await asyncio.sleep(0.005)
    assert plane.worker._tick_due <= plane.worker._clock() + QUEUED_TICK_S
    neighbour.leave(view.row)
    assert (await asked).status == 200
    neighbour.close()
    await plane.stop()


async def test_two_workers_share_a_port() -> None:
    """SO_REUSEPORT: both listen, the kernel spreads."""
    one = listen_socket("127.0.0.1", 0)
    port = one.getsockname()[1]
    two = listen_socket("127.0.0.1", port)
    assert two.getsockname() == one.getsockname()
    with socket.create_connection(("127.0.0.1", port)):
        pass
    one.close()
    two.close()


async def test_what_a_drain_cuts_off_is_recorded(make: Make, first: Upstream) -> None:
    """A request that outlasts the drain ends in an outcome, gives back its places, and its pool hears at once."""
    first.script = lambda _body, _writer: None
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"first_byte": "9s"}}})
    plane.worker._options = msgspec.structs.replace(plane.worker._options, drain_s=0.05)
    _, writer = await plane.send(CHAT)
    async with asyncio.timeout(5):
        while not first.bodies:
            await asyncio.sleep(0.005)
    plane.stop_event.set()
    await asyncio.wait_for(plane.task, 5)
    batch, _ = plane.worker.outcomes.take()
    assert [(outcome.kind.result, outcome.kind.pool) for outcome in opened(batch)] == [("client_cancelled", "a")]
    (view,) = plane.worker.fleet.views.values()
    assert (view.inflight, plane.worker.board.inflight(view.row)) == (0, 0)
    writer.close()
