"""/sim/*: faults and settings that change while the simulator runs."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.unit.simulator.rig import chat, running


async def test_faults_start_and_end_at_run_time() -> None:
    """Faults set through the control port strike from the next request on, count, and go when they are deleted."""
    async with running() as client:
        assert (await client.post("/v1/chat/completions", chat()))[0] == 200
        assert await client.faults({"kind": "status", "status": 502}) == 200
        assert (await client.post("/v1/chat/completions", chat()))[0] == 502
        armed = (await client.state())["faults"]
        assert [(fault["kind"], fault["strikes"]) for fault in armed] == [("status", 1)]
        async with client.session.delete(client.url("/sim/faults")) as answer:
            assert await answer.json() == {"faults": []}
        assert (await client.post("/v1/chat/completions", chat()))[0] == 200


async def test_settings_change_at_run_time() -> None:
    """A patch changes latencies, health and the reported precision of the next probes."""
    async with running() as client:
        status, settings = await client.post("/sim/config", {"healthy": False, "precision": {"quantization": "awq"}})
        assert (status, settings["precision"]["quantization"]) == (200, "awq")
        assert (await client.get("/health"))[0] == 503
        assert b'"quantization":"awq"' in (await client.get("/server_info"))[1]
        assert (await client.get("/sim/config"))[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sim/faults", {"faults": [{"kind": "nope"}]}),
        ("/sim/faults", {"fault": []}),
        ("/sim/config", {"ttft": {"constant": -1}}),
        ("/sim/config", {"nope": 1}),
    ],
)
async def test_nonsense_changes_nothing(path: str, body: dict[str, Any]) -> None:
    """Bad input is 400 with its place, and what was in force stays."""
    async with running() as client:
        before = await client.get("/sim/config")
        status, answer = await client.post(path, body)
        assert status == 400
        assert answer["error"]["message"]
        assert await client.get("/sim/config") == before
        assert (await client.get("/sim/nothing"))[0] == 404


async def test_refuse_closes_the_door_for_a_while() -> None:
    """New connections are refused and idle ones closed; the control port stays; then the door opens again."""
    async with running() as client:
        assert await client.faults({"kind": "refuse"}) == 200
        with pytest.raises(aiohttp.ClientConnectionError):
            async with aiohttp.ClientSession() as fresh:
                await fresh.get(client.url("/health"))
        assert (await client.state())["running"] == 0
        assert await client.faults({"kind": "refuse", "for_s": 0.05}) == 200
        async with asyncio.timeout(10):
            while True:
                try:
                    async with aiohttp.ClientSession() as fresh, fresh.get(client.url("/health")) as answer:
                        assert answer.status == 200
                        break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.005)


async def test_crash_resets_everything() -> None:
    """Streams under way break as if the process had died, and DELETE brings it back."""
    async with running() as client:
        await client.faults({"kind": "stall"})
        with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
            async with client.session.post(client.url("/v1/chat/completions"), json=chat(stream=True)) as answer:
                await answer.content.readany()
                await client.faults({"kind": "crash"})
                await answer.read()
        assert (await client.state())["running"] == 0
        async with client.session.delete(f"http://127.0.0.1:{client.server.control_bound}/sim/faults") as answer:
            assert answer.status == 200
        async with asyncio.timeout(10):
            while True:
                try:
                    assert (await client.get("/health"))[0] == 200
                    break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.005)
