"""What applications do with the official OpenAI client, as plain functions that any of its versions can run.

Needs the client and the standard library alone, so that it also runs in an environment of its own:
``python scenarios.py WORLD.json [NAME …]`` runs the named scenarios (all by default) and prints one line for each.
"""

import asyncio
import base64
import functools
import json
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
from pydantic import BaseModel

QUESTION = "Tell me about whales in the ocean"
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
PAYMENT: Any = {
    "type": "function",
    "function": {
        "name": "payment_send",
        "parameters": {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]},
    },
}


class Person(BaseModel):
    """What a structured answer is parsed into."""

    name: str
    age: int


@dataclass
class World:
    """Where everything is: the gateway, a key, the simulators' control ports by pool."""

    base_url: str
    key: str
    model: str
    slashed: str
    controls: dict[str, int]

    def client(self, **options: Any) -> openai.OpenAI:
        """A client that does not retry unless told to."""
        settings: dict[str, Any] = {"base_url": self.base_url, "api_key": self.key, "max_retries": 0, "timeout": 20.0}
        return openai.OpenAI(**(settings | options))

    def state(self) -> dict[str, int]:
        """Running requests and aborts, over all simulators."""
        states = [self._sim(port, "state") for port in self.controls.values()]
        return {name: sum(state[name] for state in states) for name in ("running", "waiting", "aborts")}

    def faults(self, *faults: dict[str, Any]) -> None:
        """The same faults on every simulator."""
        for port in self.controls.values():
            self._sim(port, "faults", {"faults": list(faults)})

    def pools_of(self, tool: str) -> set[str]:
        """Pools that have seen a request with this tool."""
        return {
            pool
            for pool, port in self.controls.items()
            for request in self._sim(port, "requests")["requests"]
            if tool in request["tools"]
        }

    @staticmethod
    def _sim(port: int, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/sim/{path}", data)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - http to this machine
            return json.load(answer)


def _ask(text: str = QUESTION) -> Any:
    return [{"role": "user", "content": text}]


def _until(condition: Callable[[], bool], what: str) -> None:
    due = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < due, what
        time.sleep(0.02)


def chat(world: World) -> None:
    """A plain chat: text, finish reason, consistent usage, the gateway's headers."""
    raw = world.client().chat.completions.with_raw_response.create(model=world.model, messages=_ask(), max_tokens=40)
    answer = raw.parse()
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 40
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert raw.headers["x-quantgate-pool"] in world.controls
    assert raw.headers["x-quantgate-request-id"]


def chat_stream(world: World) -> None:
    """A stream gives the same text as a whole answer, without a usage chunk that nobody asked for."""
    client = world.client()
    whole = client.chat.completions.create(model=world.model, messages=_ask()).choices[0].message.content
    chunks = list(client.chat.completions.create(model=world.model, messages=_ask(), stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def usage_in_stream(world: World) -> None:
    """include_usage adds one last chunk with the whole usage."""
    stream = world.client().chat.completions.create(
        model=world.model, messages=_ask(), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 64


def several_choices(world: World) -> None:
    """n answers, streamed and not, keep their index."""
    client = world.client()
    whole = client.chat.completions.create(model=world.model, messages=_ask(), n=3)
    texts = dict.fromkeys(range(3), "")
    for chunk in client.chat.completions.create(model=world.model, messages=_ask(), n=3, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == {choice.index: choice.message.content for choice in whole.choices}
    assert len(set(texts.values())) == 3


def tools(world: World) -> None:
    """A tool call with valid arguments, and the answer to its result."""
    client = world.client()
    messages = _ask("What is the weather in Paris?")
    first = client.chat.completions.create(model=world.model, messages=messages, tools=[WEATHER]).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.tool_calls
    called: Any = first.message.tool_calls[0]
    assert called.function.name == "get_weather"
    assert 1 <= json.loads(called.function.arguments)["days"] <= 7
    messages += [
        first.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": called.id, "content": "18 degrees and rain"},
    ]
    second = client.chat.completions.create(model=world.model, messages=messages, tools=[WEATHER]).choices[0]
    assert second.finish_reason == "stop"
    assert "18 degrees" in (second.message.content or "")


def tools_streamed(world: World) -> None:
    """The deltas of a tool call join to the same call."""
    client = world.client()
    messages = _ask("What is the weather in Paris?")
    whole: Any = client.chat.completions.create(model=world.model, messages=messages, tools=[WEATHER]).choices[0]
    name, arguments, reason = "", "", None
    for chunk in client.chat.completions.create(model=world.model, messages=messages, tools=[WEATHER], stream=True):
        choice = chunk.choices[0]
        reason = choice.finish_reason or reason
        for delta in choice.delta.tool_calls or ():
            assert delta.function is not None
            name += delta.function.name or ""
            arguments += delta.function.arguments or ""
    called = whole.message.tool_calls[0].function
    assert (name, arguments, reason) == (called.name, called.arguments, "tool_calls")


def privileged_tools(world: World) -> None:
    """A privileged tool call is served by the pool of full precision, whatever the route prefers."""
    client = world.client()
    for number in range(5):
        raw = client.chat.completions.with_raw_response.create(
            model=world.model, messages=_ask(f"Pay {number}"), tools=[PAYMENT], stream=number % 2 == 1
        )
        assert raw.headers["x-quantgate-precision"] == "bf16"
        parsed: Any = raw.parse()
        if number % 2:
            list(parsed)
    assert world.pools_of("payment_send") == {"bf16"}


def json_schema(world: World) -> None:
    """A structured answer parses into the model it was asked for."""
    message = (
        world.client()
        .chat.completions.parse(model=world.model, messages=_ask(), response_format=Person)
        .choices[0]
        .message
    )
    assert isinstance(message.parsed, Person)


def completions(world: World) -> None:
    """The legacy API, whole and streamed."""
    client = world.client()
    whole = client.completions.create(model=world.model, prompt="Once upon a time", max_tokens=20)
    stream = client.completions.create(model=world.model, prompt="Once upon a time", max_tokens=20, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def responses(world: World) -> None:
    """The responses API, whole and streamed."""
    client = world.client()
    whole = client.responses.create(model=world.model, input=QUESTION)
    assert whole.output_text
    assert whole.usage is not None
    text = ""
    completed = False
    for event in client.responses.create(model=world.model, input=QUESTION, stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
        completed = completed or event.type == "response.completed"
    assert (text, completed) == (whole.output_text, True)


def embeddings(world: World) -> None:
    """Vectors in the client's default encoding and as asked for."""
    client = world.client()
    default = client.embeddings.create(model=world.model, input=["hello world", "other"])
    assert [len(entry.embedding) for entry in default.data] == [256, 256]
    packed: Any = client.embeddings.create(model=world.model, input="hello world", encoding_format="base64")
    assert len(base64.b64decode(packed.data[0].embedding)) == 256 * 4


def models(world: World) -> None:
    """The list holds model and alias; each can be retrieved, also with a slash in its name."""
    client = world.client()
    listed = [model.id for model in client.models.list()]
    assert {world.model, world.slashed} <= set(listed)
    for name in listed:
        assert client.models.retrieve(name).id == name
    assert client.chat.completions.create(model=world.slashed, messages=_ask()).choices[0].message.content


def audio(world: World) -> None:
    """A transcription is routed by the form's model."""
    heard: Any = world.client().audio.transcriptions.create(
        model=world.model, file=("a.wav", b"0" * 64_000), timestamp_granularities=["word", "segment"]
    )
    assert heard.text


def _raises(kind: type[Exception], call: Callable[[], object]) -> Any:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def errors(world: World) -> None:
    """Each error is of the class that applications catch, with message, code and type."""
    client = world.client()
    create = client.chat.completions.create
    missing = _raises(openai.NotFoundError, lambda: create(model="nobody", messages=_ask()))
    assert (missing.status_code, missing.code) == (404, "model_not_found")
    stranger = world.client(api_key="wrong").chat.completions
    refused = _raises(openai.AuthenticationError, lambda: stranger.create(model=world.model, messages=_ask()))
    assert refused.type == "authentication_error"
    empty: Any = []
    invalid = _raises(openai.BadRequestError, lambda: create(model=world.model, messages=empty))
    assert invalid.param == "messages"
    long = _raises(openai.APIStatusError, lambda: create(model=world.model, messages=_ask("x" * 900_000)))
    assert 400 <= long.status_code < 500 or long.status_code == 503
    world.faults({"kind": "status", "status": 429, "retry_after": "3"})
    try:
        limited = _raises(openai.RateLimitError, lambda: create(model=world.model, messages=_ask()))
        assert limited.response.headers["retry-after"] == "3"
        world.faults({"kind": "status", "status": 503})
        assert (
            _raises(openai.InternalServerError, lambda: create(model=world.model, messages=_ask())).status_code == 503
        )
    finally:
        world.faults()


def error_in_stream(world: World) -> None:
    """A stream that breaks in the middle ends in the client's own exception, not in silence."""
    world.faults({"kind": "reset", "after_tokens": 5})
    try:
        stream = world.client().chat.completions.create(model=world.model, messages=_ask(), stream=True)
        seen: list[str] = []

        def read() -> None:
            for chunk in stream:
                seen.append(chunk.choices[0].delta.content or "")

        _raises(openai.APIError, read)
        assert "".join(seen)
    finally:
        world.faults()


def failover(world: World) -> None:
    """A failure before the first token is repaired by the gateway: the client notices nothing."""
    world.faults({"kind": "reset", "after_tokens": 0, "times": 1})
    try:
        stream = world.client().chat.completions.create(model=world.model, messages=_ask(), stream=True)
        assert [chunk.choices[0].finish_reason for chunk in stream][-1] == "stop"
    finally:
        world.faults()


def cancellation(world: World) -> None:
    """Closing a stream stops the generation at the runtime."""
    before = world.state()["aborts"]
    stream = world.client().chat.completions.create(
        model=world.model, messages=_ask(), max_tokens=4000, stream=True, extra_body={"ignore_eos": True}
    )
    for _ in range(3):
        next(stream)
    stream.close()
    _until(lambda: world.state()["aborts"] == before + 1, "the runtime aborted")
    _until(lambda: world.state()["running"] == 0, "nothing runs any more")


def timeouts(world: World) -> None:
    """A client that gives up waiting frees the runtime's slot, streamed or not."""
    world.faults({"kind": "hang"})
    before = world.state()["aborts"]
    try:
        for stream in (False, True):
            create = world.client(timeout=0.4).chat.completions.create
            call = functools.partial(create, model=world.model, messages=_ask(), stream=stream)
            _raises(openai.APITimeoutError, call)
    finally:
        world.faults()
    _until(lambda: world.state()["aborts"] == before + 2, "the runtime aborted both")
    _until(lambda: world.state()["running"] == 0, "nothing runs any more")


def many_at_once(world: World) -> None:
    """The asynchronous client, dozens of requests at once, each with its own answer."""

    async def run() -> None:
        async with openai.AsyncOpenAI(
            base_url=world.base_url, api_key=world.key, max_retries=0, timeout=30.0
        ) as client:

            async def one(number: int) -> tuple[str, str]:
                messages = _ask(f"What is special about number {number}?")
                whole = await client.chat.completions.create(model=world.model, messages=messages)
                text = ""
                stream = await client.chat.completions.create(model=world.model, messages=messages, stream=True)
                async for chunk in stream:
                    text += chunk.choices[0].delta.content or ""
                return whole.choices[0].message.content or "", text

            answers = await asyncio.gather(*(one(number) for number in range(30)))
            assert all(whole == streamed for whole, streamed in answers)
            assert len({whole for whole, _ in answers}) == 30

    asyncio.run(run())


SCENARIOS: dict[str, Callable[[World], None]] = {
    function.__name__: function
    for function in (
        chat,
        chat_stream,
        usage_in_stream,
        several_choices,
        tools,
        tools_streamed,
        privileged_tools,
        json_schema,
        completions,
        responses,
        embeddings,
        models,
        audio,
        errors,
        error_in_stream,
        failover,
        cancellation,
        timeouts,
        many_at_once,
    )
}


def main(arguments: list[str]) -> int:
    """Run scenarios; the exit code is the number that failed."""
    world = World(**json.loads(Path(arguments[0]).read_text()))
    failed = 0
    for name in arguments[1:] or SCENARIOS:
        try:
            SCENARIOS[name](world)
        except Exception:
            failed += 1
            sys.stdout.write(f"{name}: failed\n{traceback.format_exc()}\n")
        else:
            sys.stdout.write(f"{name}: ok\n")
    sys.stdout.write(f"openai {openai.__version__}\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
