"""One answer on its way out, token by token or whole, and how a transport fault ends it.

Owns what leaves the connection after the engine has said "now". ``service`` makes one for each request it admits.
"""

from collections.abc import Callable, Iterator

import msgspec
import orjson

from gateway.simulator.chat import error_event
from gateway.simulator.connection import Connection, Request, chunk
from gateway.simulator.engine import Engine, Job
from gateway.simulator.fault import Fault
from gateway.simulator.frame import DONE

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
BUSY = "The engine is currently busy. Please retry later."
_BREAKING = frozenset({"reset", "drop", "cut", "error_event"})
_RESET_DELAY_S = 0.02  # so that the peer has read what was sent before the reset throws the rest away


class Seen(msgspec.Struct):
    """What ``GET /sim/requests`` tells of one request: its shape, never its text.

    ``outcome``: running | ok | aborted | broken | a status.
    """

    number: int
    api: str
    model: str
    stream: bool
    prompt_tokens: int
    turns: int
    task: str
    tools: list[str]
    fault: str
    outcome: str = "running"


def send_error(
    connection: Connection,
    engine: Engine,
    status: int,
    kind: str,
    message: str,
    *,
    param: str | None = None,
    retry_after: str | None = None,
) -> None:
    """An error in vLLM's shape."""
    engine.meters.statuses[status] += 1
    error = {"message": message, "type": kind, "param": param, "code": status}
    headers = [("retry-after", retry_after)] if retry_after is not None else []
    connection.respond(status, orjson.dumps({"error": error}), headers=headers)


class Delivery:
    """One answer. ``events`` for a stream, else ``body``, which is made when it is due."""

    def __init__(
        self, connection: Connection, engine: Engine, request: Request, seen: Seen, fault: Fault | None
    ) -> None:
        self.connection = connection
        self.engine = engine
        self.request = request
        self.seen = seen
        self.fault = fault
        self.events: Iterator[bytes] | None = None
        self.body: Callable[[], tuple[bytes, str]] = lambda: (b"{}", "application/json")
        self.finish = "stop"
        self.job: Job | None = None
        self._held: bytes | None = None
        self._sent = 0
        self._headers: list[tuple[str, str]] = []
        self._breaking = fault if fault is not None and fault.kind in _BREAKING else None

    def start(self, job: Job) -> None:
        """Hand the job to the engine, or say that the engine is full."""
        self.job = job
        self._headers = self._load_header()
        connection = self.connection
        if not self.engine.has_room:
            self.engine.meters.rejections += 1
            self.seen.outcome = "503"
            send_error(connection, self.engine, 503, "Service Unavailable", BUSY)
            return
        connection.on_gone = self._gone
        connection.on_writable = lambda: self.engine.unblock(job)
        if self.events is not None and not self._silent:
            # The head leaves before the first token, as Starlette sends it.
            connection.write(connection.begin_stream(self._headers))
        self.engine.submit(job)

    @property
    def _silent(self) -> bool:
        """Whether not even a head may leave."""
        fault = self.fault
        return fault is not None and (fault.kind == "hang" or (fault.kind == "reset" and fault.after_tokens == 0))

    def _load_header(self) -> list[tuple[str, str]]:
        """The ORCA load report, where the client asks for it in JSON."""
        if self.request.headers.get("endpoint-load-metrics-format", "").upper() != "JSON":
            return []
        waiting, usage = float(len(self.engine.waiting)), self.engine.kv_usage
        named = {"num_requests_waiting": waiting, "kv_cache_usage_perc": usage}
        return [("endpoint-load-metrics", "JSON " + orjson.dumps({"named_metrics": named}).decode())]

    def _gone(self) -> None:
        self.seen.outcome = "aborted"
        if self.job is not None:
            self.engine.abort(self.job)

    def step(self) -> bool:
        """Send the next token of a stream; whether more follow."""
        events = self.events
        if events is None:
            return False
        if self._sent == 0:
            self._held = next(events, b"")
        if self._breaking is not None and self._sent >= self._breaking.after_tokens:
            self._break(self._breaking)
            return False
        data, self._held = self._held or b"", next(events, None)
        self._sent += 1
        self.connection.write(chunk(data))
        if self.connection.paused and self.job is not None:
            self.job.blocked = True
        return self._held is not None

    def done(self) -> None:
        """The engine is through with the request."""
        connection, meters = self.connection, self.engine.meters
        connection.on_gone = connection.on_writable = None
        if self.events is None and self._breaking is not None:
            self._break_whole(self._breaking)
            return
        self.seen.outcome = "ok"
        meters.statuses[200] += 1
        meters.finished["length" if self.finish == "length" else "stop"] += 1
        if self.events is not None:
            connection.end_stream()
        else:
            body, content_type = self.body()
            connection.respond(200, body, content_type, self._headers)

    def _break(self, fault: Fault) -> None:
        """End a running stream the way the fault says."""
        engine, connection = self.engine, self.connection
        self.seen.outcome = "broken"
        engine.meters.finished["error"] += 1
        connection.on_gone = connection.on_writable = None
        if self.job is not None:
            engine.abort(self.job, counted=False)
        if fault.kind == "cut":
            connection.end_stream()
        elif fault.kind == "drop":
            connection.close()
        elif fault.kind == "error_event":
            connection.end_stream(chunk(error_event(fault.message or ENGINE_DEAD, fault.status) + DONE))
        elif fault.after_tokens == 0:
            connection.reset()
        else:
            engine.loop.call_later(_RESET_DELAY_S, connection.reset)

    def _break_whole(self, fault: Fault) -> None:
        """Spoil the sending of a whole answer."""
        connection = self.connection
        self.seen.outcome = "broken"
        self.engine.meters.finished["error"] += 1
        body, content_type = self.body()
        if fault.kind == "error_event":
            send_error(connection, self.engine, fault.status, "InternalServerError", fault.message or ENGINE_DEAD)
        elif fault.kind == "cut":
            connection.respond(200, body[: len(body) // 2], content_type)
        elif fault.kind == "drop":
            connection.respond_partly(body, 0.5)
            connection.close()
        elif fault.after_tokens == 0:
            connection.reset()
        else:
            connection.respond_partly(body, 0.5)
            self.engine.loop.call_later(_RESET_DELAY_S, connection.reset)
