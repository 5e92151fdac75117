"""The server's life."""

import asyncio

from gateway.simulator.config import Config
from gateway.simulator.fault import Fault
from tests.unit.simulator.rig import chat, running


async def test_faults_of_the_settings_are_in_force_at_start() -> None:
    """What the file says goes wrong goes wrong from the first request."""
    async with running(Config(faults=(Fault("status", status=503),))) as client:
        assert (await client.post("/v1/chat/completions", chat()))[0] == 503


async def test_idle_connections_are_closed() -> None:
    """A kept-alive connection without a request is closed after the keep-alive time, as uvicorn does."""
    async with running(Config(keep_alive=0.05)) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.server.bound)
        writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()


async def test_stop_leaves_nothing_open() -> None:
    """After stop no connection is left."""
    async with running() as client:
        await client.post("/v1/chat/completions", chat())
        server = client.server
    await asyncio.sleep(0)
    assert server.connections == set() or all(connection.transport is None for connection in server.connections)
