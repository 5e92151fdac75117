"""A simulator in the test's own loop, and requests to it: what the tests of this folder share."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from gateway.core.assemble import assemble
from gateway.simulator.answer import Answer
from gateway.simulator.ask import Ask
from gateway.simulator.compose import compose
from gateway.simulator.config import Config
from gateway.simulator.frame import Frame
from gateway.simulator.reading import read_ask
from gateway.simulator.server import Server

WALL_S = 1_700_000_000.0

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}, "days": {"type": "integer"}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
PAY: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "pay",
        "parameters": {
            "type": "object",
            "properties": {"amount": {"type": "number", "minimum": 1}},
            "required": ["amount"],
        },
    },
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
DOCUMENTS = "Answer only from the documents.\n[1] The cat sleeps on the red mat.\n[2] The dog barks in the garden."


def chat(text: str = "Tell me about whales in the ocean", **more: Any) -> dict[str, Any]:
    """A chat body."""
    return {"model": "sim", "messages": [{"role": "user", "content": text}], **more}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A response_format with this schema."""
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def ask(api: str = "chat", **body: Any) -> Ask:
    """The ask in a body."""
    return read_ask(api, body or chat(), 4)


FRAME = Frame("0001", 1_700_000_000, "sim", "vllm-0.32.0-00000000", cached_tokens=2)
BODIES: dict[str, dict[str, Any]] = {
    "text": chat(),
    "tools": chat("get_weather then pay", tools=[WEATHER, PAY]),
    "schema": chat(response_format=json_schema(PERSON)),
    "one-token": chat(max_tokens=1),
    "two-choices": chat(n=2),
    "with-reasoning-only": chat(max_tokens=2),
}


def answered(body: dict[str, Any], fault: str | None = None) -> tuple[Ask, Answer]:
    """An ask with usage wanted, and its answer with three tokens of reasoning."""
    asked = ask(**body, stream_options={"include_usage": True})
    return asked, compose(asked, Config(reasoning_tokens=3), fault)


def assert_same_said(api: Any, body: dict[str, Any], fault: str | None = None) -> None:
    """What a client assembles from the stream is what it gets unstreamed: text, calls, finish reason, usage."""
    asked, answer = answered(body, fault)
    whole = assemble(None, api.whole(answer, asked, FRAME))
    streamed = assemble(None, b"".join(api.events(answer, asked, FRAME)))
    assert (whole.problem, streamed.problem, streamed.broken_events) == ("", "", 0)
    assert streamed.done
    assert streamed.model == "sim"
    assert [choice.text for choice in streamed.choices] == [choice.text for choice in whole.choices]
    assert [choice.finish_reason for choice in streamed.choices] == [choice.finish_reason for choice in whole.choices]
    calls = [[[(call.name, call.arguments) for call in c.tool_calls] for c in a.choices] for a in (whole, streamed)]
    assert calls[0] == calls[1]
    assert streamed.usage is not None
    assert streamed.usage.completion_tokens == answer.completion_tokens


class Client:
    """Requests to one server."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    def url(self, path: str) -> str:
        """A path on the serving port."""
        return f"http://127.0.0.1:{self.server.bound}{path}"

    async def post(self, path: str, body: object, **options: Any) -> tuple[int, Any]:
        """(status, JSON) of a POST."""
        async with self.session.post(self.url(path), json=body, **options) as answer:
            return answer.status, json.loads(await answer.read() or b"null")

    async def get(self, path: str, **options: Any) -> tuple[int, bytes]:
        """(status, body) of a GET."""
        async with self.session.get(self.url(path), **options) as answer:
            return answer.status, await answer.read()

    async def state(self) -> dict[str, Any]:
        """``/sim/state``, past any fault."""
        async with self.session.get(f"http://127.0.0.1:{self.server.control_bound}/sim/state") as answer:
            found: dict[str, Any] = await answer.json()
            return found

    async def faults(self, *faults: dict[str, Any]) -> int:
        """Put these faults in force, past any fault; the status."""
        url = f"http://127.0.0.1:{self.server.control_bound}/sim/faults"
        async with self.session.post(url, json={"faults": list(faults)}) as answer:
            return answer.status

    async def stream(self, body: object, path: str = "/v1/chat/completions") -> list[bytes]:
        """The data of every event to the proper end of the stream."""
        async with self.session.post(self.url(path), json=body) as answer:
            assert answer.status == 200, await answer.read()
            lines = (await answer.read()).splitlines()
            return [line[5:].strip() for line in lines if line.startswith(b"data:")]


@asynccontextmanager
async def running(config: Config | None = None) -> AsyncIterator[Client]:
    """A server on free ports with its client."""
    server = Server(config or Config(), lambda: WALL_S, 7)
    await server.start("127.0.0.1", 0, 0)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        try:
            yield Client(server, session)
        finally:
            await server.stop()


async def until(condition: Any) -> None:
    """Let the loop turn until the condition holds; at most ten seconds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)
