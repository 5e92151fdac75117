"""What applications do with Anthropic's official client, as plain functions.

Needs that client and the standard library alone, so that it runs in an environment of its own:
``python anthropic_scenarios.py WORLD.json`` runs them and prints one line for each.
"""

import json
import sys
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic

ASK: Any = [{"role": "user", "content": "Tell me about whales in the ocean"}]
WEATHER: Any = {
    "name": "get_weather",
    "description": "weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class World:
    """Where everything is, as ``scenarios.World`` has it; the client adds ``/v1`` itself."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.url = fields["base_url"].removesuffix("/v1")
        self.key, self.model, self.controls = fields["key"], fields["model"], fields["controls"]

    def client(self, **options: Any) -> Any:
        """A client that does not retry."""
        return anthropic.Anthropic(**({"base_url": self.url, "api_key": self.key, "max_retries": 0} | options))

    def faults(self, *faults: dict[str, Any]) -> None:
        """The same faults on every simulator."""
        body = json.dumps({"faults": list(faults)}).encode()
        for port in self.controls.values():
            urllib.request.urlopen(f"http://127.0.0.1:{port}/sim/faults", body, timeout=5).close()


def message(world: World) -> None:
    """A whole message, with either way to send the key."""
    for options in ({}, {"api_key": None, "auth_token": world.key}):
        found = world.client(**options).messages.create(model=world.model, messages=ASK, max_tokens=40)
        assert found.content[0].text
        assert found.usage.output_tokens > 0


def stream(world: World) -> None:
    """The helper puts the events together."""
    with world.client().messages.stream(model=world.model, messages=ASK, max_tokens=40) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    assert text == final.content[0].text
    assert final.stop_reason in ("end_turn", "max_tokens")


def tools(world: World) -> None:
    """A call with arguments that are parsed, streamed too."""
    asked: dict[str, Any] = {"model": world.model, "messages": ASK, "max_tokens": 200, "tools": [WEATHER]}
    with world.client().messages.stream(**asked) as events:
        streamed = events.get_final_message()
    for found in (world.client().messages.create(**asked), streamed):
        (call,) = [block for block in found.content if block.type == "tool_use"]
        assert (call.name, type(call.input["city"])) == ("get_weather", str)


def counting(world: World) -> None:
    """Counting messages and listing models."""
    assert world.client().messages.count_tokens(model=world.model, messages=ASK).input_tokens > 0
    assert world.model in [model.id for model in world.client().models.list()]


def errors(world: World) -> None:
    """Each error is of the class that applications catch, and has the shape that the API's other clients look for."""

    def refused(kind: Any, client: Any = None, **fields: Any) -> Any:
        asked = {"model": world.model, "messages": ASK, "max_tokens": 20, **fields}
        try:
            (client or world.client()).messages.create(**asked)
        except kind as error:
            assert error.body["type"] == "error", error.body
            return error.body["error"]
        raise AssertionError(f"{kind.__name__} was not raised")

    assert refused(anthropic.NotFoundError, model="nobody")["code"] == "model_not_found"
    assert refused(anthropic.AuthenticationError, world.client(api_key="wrong"))["type"] == "authentication_error"
    assert refused(anthropic.BadRequestError, messages=[])["param"] == "messages"
    long = refused(anthropic.BadRequestError, messages=[{"role": "user", "content": "word " * 300_000}])
    assert long["message"].startswith("prompt is too long")


def error_in_stream(world: World) -> None:
    """A stream that breaks in the middle ends in the client's own exception, not in silence."""
    world.faults({"kind": "reset", "after_tokens": 5})
    try:
        with world.client().messages.stream(model=world.model, messages=ASK, max_tokens=90) as events:
            list(events)
    except anthropic.APIError:
        return
    finally:
        world.faults()
    raise AssertionError("no error was raised")


SCENARIOS: tuple[Callable[[World], None], ...] = (message, stream, tools, counting, errors, error_in_stream)


def main(path: str) -> int:
    """Run all; the exit code is the number that failed."""
    world = World(json.loads(Path(path).read_text()))
    failed = 0
    for scenario in SCENARIOS:
        try:
            scenario(world)
        except Exception:
            failed += 1
            sys.stdout.write(f"{scenario.__name__}: failed\n{traceback.format_exc()}\n")
        else:
            sys.stdout.write(f"{scenario.__name__}: ok\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
