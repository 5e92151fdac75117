"""One inference request from its body to the engine: read, admit, draw the faults, compose, submit.

Owns that order. ``routes`` calls ``generate`` and ``compute``; ``delivery`` takes over from there. Clocks and
randomness are arguments of the construction.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from types import ModuleType
from typing import Any

import orjson

from gateway.simulator import chat, completions, messages, responses
from gateway.simulator.ask import Ask, BadAskError
from gateway.simulator.compose import compose, uniforms
from gateway.simulator.config import Config
from gateway.simulator.connection import Connection, Request
from gateway.simulator.delivery import BUSY, ENGINE_DEAD, Delivery, Seen, send_error
from gateway.simulator.engine import Engine, Job
from gateway.simulator.fault import Armed, Fault, Subject, choose
from gateway.simulator.frame import Frame
from gateway.simulator.identity import fingerprint
from gateway.simulator.reading import read_ask

RENDERERS: Mapping[str, ModuleType] = {
    "chat": chat,
    "completions": completions,
    "responses": responses,
    "messages": messages,
}


def read_object(request: Request) -> dict[str, Any]:
    """The request's body as a JSON object. Raises ``BadAskError`` if it is none."""
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise BadAskError(f"JSON decode error: {error}") from None
    if not isinstance(body, dict):
        raise BadAskError("Input should be a valid dictionary")
    return body


class Service:
    """Serves inference on one engine.

    ``wall`` gives the wall clock in seconds. ``nonce`` makes ids unique between servers. ``armed`` are the faults in
    force; ``seen`` the last requests.
    """

    def __init__(self, config: Config, engine: Engine, wall: Callable[[], float], nonce: int) -> None:
        self.engine = engine
        self.wall = wall
        self.nonce = nonce
        self.armed: list[Armed] = []
        self.seen: deque[Seen] = deque(maxlen=config.record)
        self.started = int(wall())
        self._count = 0
        self._random = Random(config.seed)  # noqa: S311 - runs must be repeatable

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self.engine.config

    def next_id(self) -> str:
        """An id that no other answer of any server has."""
        return f"{self.nonce:016x}{self._count + 1:016x}"

    def refuse(self, connection: Connection, status: int, kind: str, message: str, *, param: str | None = None) -> None:
        """An error in vLLM's shape."""
        send_error(connection, self.engine, status, kind, message, param=param)

    def generate(self, connection: Connection, request: Request, api: str) -> None:
        """Serve one of the generating APIs. Raises ``BadAskError`` where the body lacks something."""
        config = self.config
        ask = read_ask(api, read_object(request), config.bytes_per_token)
        model = ask.model or config.model
        if not self._admissible(connection, model, ask):
            return
        frame_id = self.next_id()
        transport, quality = self._drawn(ask.subject, ask)
        seen = self._record(ask.subject, [tool.name for tool in ask.tools], transport, quality)
        if transport is not None and transport.kind == "status":
            self._fail(connection, transport, seen)
            return
        cached = self._cached(ask)
        answer = compose(ask, config, quality.kind if quality else None)
        if quality is not None:
            self.engine.meters.struck[quality.kind] += 1
        done = transport is None or transport.kind != "no_done"
        frame = Frame(frame_id, int(self.wall()), model, fingerprint(config), cached, done=done)
        delivery = Delivery(connection, self.engine, request, seen, transport)
        delivery.finish = answer.choices[0].finish
        if ask.stream:
            delivery.events = RENDERERS[api].events(answer, ask, frame)
        else:
            delivery.body = lambda: (RENDERERS[api].whole(answer, ask, frame), "application/json")
        self._submit(delivery, ask.prompt_tokens, cached, answer.steps)

    def compute(
        self,
        connection: Connection,
        request: Request,
        api: str,
        model: str,
        *,
        made: tuple[bytes, int],
        content_type: str,
    ) -> None:
        """Serve an answer of one step that is already computed: ``made`` is (body, prompt tokens)."""
        body, tokens = made
        subject = Subject(
            api=api,
            model=model,
            prompt_tokens=tokens,
            turns=1,
            task=api,
            tools=False,
            structured=False,
            stream=False,
            text="",
            calling=False,
            cited=False,
        )
        transport, quality = self._drawn(subject, None)
        seen = self._record(subject, [], transport, quality)
        if transport is not None and transport.kind == "status":
            self._fail(connection, transport, seen)
            return
        delivery = Delivery(connection, self.engine, request, seen, transport)
        delivery.body = lambda: (body, content_type)
        self._submit(delivery, tokens, 0, 1)

    def _admissible(self, connection: Connection, model: str, ask: Ask) -> bool:
        """Refuse what the model cannot serve: another name, too long a prompt, more output than the context leaves."""
        config = self.config
        if model not in config.names:
            self.refuse(connection, 404, "NotFoundError", f"The model `{model}` does not exist.", param="model")
            return False
        wanted, prompt, window = ask.max_tokens, ask.prompt_tokens, config.context_length
        if wanted is not None and wanted < 1:
            message = f"max_tokens must be at least 1, got {wanted}."
            self.refuse(connection, 400, "BadRequestError", message, param="max_tokens")
            return False
        if prompt + (wanted or 1) > window:
            message = (
                f"This model's maximum context length is {window} tokens. However, you requested {wanted or 1} output "
                f"tokens and your prompt contains at least {prompt} input tokens, for a total of at least "
                f"{prompt + (wanted or 1)} tokens. Please reduce the length of the input prompt or the number of "
                f"requested output tokens."
            )
            self.refuse(connection, 400, "BadRequestError", message, param="input_tokens")
            return False
        return True

    def _cached(self, ask: Ask) -> int:
        if not self.config.prefix_cache:
            return 0
        hit = max(0, min(self.engine.prefixes.hit(ask.prefixes), ask.prompt_tokens - 1))
        self.engine.meters.prefix_queries += ask.prompt_tokens
        self.engine.meters.prefix_hits += hit
        return hit

    def _drawn(self, subject: Subject, ask: Ask | None) -> tuple[Fault | None, Fault | None]:
        if not self.armed:
            return None, None
        draw = self._random.random
        by_sequence = [draw() for _ in self.armed]
        by_request = by_sequence if ask is None else uniforms(ask, self.config.seed, len(self.armed))
        return choose(self.armed, subject, self.engine.loop.time(), by_request, by_sequence)

    def _record(self, subject: Subject, tools: list[str], transport: Fault | None, quality: Fault | None) -> Seen:
        self._count += 1
        self.engine.meters.requests[subject.api] += 1
        seen = Seen(
            number=self._count,
            api=subject.api,
            model=subject.model,
            stream=subject.stream,
            prompt_tokens=subject.prompt_tokens,
            turns=subject.turns,
            task=subject.task,
            tools=tools,
            fault="+".join(fault.kind for fault in (transport, quality) if fault is not None),
        )
        self.seen.append(seen)
        return seen

    def _submit(self, delivery: Delivery, tokens: int, cached: int, steps: int) -> None:
        config, draw, fault = self.config, self._random.random, delivery.fault
        factor, freeze = 1.0, None
        if fault is not None:
            self.engine.meters.struck[fault.kind] += 1
            factor = fault.factor if fault.kind == "slow" else 1.0
            freeze = {"hang": 0, "stall": fault.after_tokens}.get(fault.kind)
        ttft = config.ttft.sample(draw()) + config.ttft_per_1k_tokens * (tokens - cached) / 1000
        job = Job(
            prompt_tokens=tokens,
            cached_tokens=cached,
            steps=steps,
            ttft=ttft * factor,
            tpot=config.tpot.sample(draw()) * factor,
            step=delivery.step if delivery.events is not None else None,
            done=delivery.done,
            freeze_after=freeze,
        )
        delivery.start(job)

    def _fail(self, connection: Connection, fault: Fault, seen: Seen) -> None:
        self.engine.meters.struck[fault.kind] += 1
        seen.outcome = str(fault.status)
        kind = {429: "RateLimitError", 503: "Service Unavailable"}.get(fault.status, "InternalServerError")
        message = fault.message or (BUSY if fault.status in (429, 503) else ENGINE_DEAD)
        send_error(connection, self.engine, fault.status, kind, message, retry_after=fault.retry_after)
