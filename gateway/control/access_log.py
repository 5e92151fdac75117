"""The access log: one JSON line per request, with the decision and its reasons. No prompt or answer text, no key.

Owns the form of a line and its way out: lines are made on the loop, written in batches by one thread, so that a slow
disk or a full pipe holds up nothing. What does not fit into the bounded backlog is dropped and counted. A file that was
rotated away is opened anew. Called by ``control.recorder``; configured by ``app.control_main``.
"""

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import structlog

from gateway.control.series import Counter
from gateway.model.messages import Outcomes
from gateway.model.outcome import Attempt, Outcome

FLUSH_S = 0.1
BACKLOG_MOST_BYTES = 16 * 1024 * 1024
# Names a client can make up are cut; everything else in a line is bounded by the policy or an enum.
NAME_MOST_CHARS = 128

_ENCODER = msgspec.json.Encoder()

_log = structlog.get_logger("control.access_log")


class AccessAttempt(msgspec.Struct, omit_defaults=True):
    """One try at one endpoint, in a line. ``started_ms`` counts from the arrival of the request."""

    pool: str
    endpoint: str
    status: int
    started_ms: float
    took_ms: float
    failure: str = ""


class AccessLine(msgspec.Struct, omit_defaults=True):
    """One line. Durations in milliseconds; a field that is unknown or does not apply is left out."""

    at: datetime
    event: Literal["request"]
    request_id: str
    worker: int
    generation: int
    api: str
    status: int
    result: str
    total_ms: float
    bytes_in: int
    bytes_out: int
    trace_id: str = ""
    tenant: str = ""
    tier: str = ""
    model: str = ""
    adapter: str = ""
    bucket: str = ""
    length: str = ""
    task: str = ""
    privilege: str = ""
    tool_use: str = ""
    structured: str = ""
    stream: bool = False
    seed: bool = False
    rule: str = ""
    constraints: tuple[str, ...] = ()
    arm: str = ""
    rollout: str = ""
    pool: str = ""
    endpoint: str = ""
    precision: str = ""
    failure: str = ""
    error_code: str = ""
    finish_reason: str = ""
    attempts: tuple[AccessAttempt, ...] = ()
    queue_ms: float = -1.0
    overhead_ms: float = -1.0
    ttft_ms: float = -1.0
    tpot_ms: float = -1.0
    longest_gap_ms: float = -1.0
    prompt_tokens_estimated: int = -1
    prompt_tokens: int = -1
    cached_tokens: int = -1
    completion_tokens: int = -1
    events: int = 0
    conversation: str = ""


def access_line(outcome: Outcome) -> AccessLine:
    """The line of one request. Positional arguments: this runs for every request, and keywords double its cost."""
    completion = outcome.completion_tokens
    span_s = outcome.first_to_last_s
    return AccessLine(
        datetime.fromtimestamp(outcome.at, UTC),
        "request",
        outcome.request_id,
        outcome.worker,
        outcome.generation,
        outcome.api,
        outcome.status,
        outcome.result,
        _ms(outcome.total_s),
        outcome.bytes_in,
        outcome.bytes_out,
        outcome.trace_id,
        outcome.tenant,
        outcome.tier,
        outcome.model[:NAME_MOST_CHARS],
        outcome.adapter[:NAME_MOST_CHARS],
        outcome.bucket,
        outcome.length,
        outcome.task,
        outcome.privilege,
        outcome.tool_use,
        outcome.structured,
        outcome.stream,
        outcome.seed,
        outcome.rule,
        outcome.constraints,
        outcome.arm,
        outcome.rollout,
        outcome.pool,
        outcome.endpoint,
        outcome.precision,
        outcome.failure,
        outcome.error_code,
        outcome.finish_reason,
        tuple([_attempt(attempt) for attempt in outcome.attempts]),
        _ms(outcome.queue_s),
        _ms(outcome.overhead_s),
        _ms(outcome.ttft_s),
        _ms(span_s / (completion - 1)) if completion > 1 else -1.0,
        _ms(outcome.longest_gap_s),
        outcome.prompt_tokens_estimated,
        outcome.prompt_tokens,
        outcome.cached_tokens,
        completion,
        outcome.events,
        outcome.conversation,
    )


def _attempt(attempt: Attempt) -> AccessAttempt:
    return AccessAttempt(
        attempt.pool,
        attempt.endpoint,
        attempt.status,
        _ms(attempt.started_s),
        _ms(attempt.took_s),
        attempt.failure,
    )


def _ms(seconds: float) -> float:
    """Milliseconds to the microsecond; -1 stays -1 (unknown)."""
    return int(seconds * 1e6 + 0.5) / 1e3 if seconds >= 0.0 else -1.0


class _LineLogger(structlog.BoundLoggerBase):
    """A structlog logger whose event is a line: it runs the processors without building a dict."""

    def request(self, line: AccessLine) -> None:
        event: Any = line
        for processor in self._processors:
            event = processor(self._logger, "request", event)
        self._logger.msg(event)


class AccessLog:
    """Writes a line per outcome to ``sink``. Off (and free) while ``enabled`` is false."""

    def __init__(self, sink: "BatchWriter") -> None:
        self.enabled = True
        self.dropped = Counter(
            "quantgate_access_log_dropped_total", "Access log lines lost because they could not be written fast enough."
        )
        self._sink = sink
        logger = structlog.wrap_logger(sink, processors=[_render], wrapper_class=_LineLogger)
        self._logger = cast(_LineLogger, logger.bind())

    def take_batch(self, message: Outcomes) -> None:
        """Write the lines of a batch."""
        if not self.enabled:
            return
        write = self._logger.request
        lost_before = self._sink.dropped
        for outcome in message.batch:
            write(access_line(outcome))
        if self._sink.dropped != lost_before:
            self.dropped.add((), self._sink.dropped - lost_before)


def _render(_: object, __: str, line: Any) -> bytes:
    return _ENCODER.encode(line) + b"\n"


class BatchWriter:
    """A bounded backlog of lines and the thread that writes it. ``target`` None = standard output."""

    def __init__(self, target: Path | None, backlog_most_bytes: int = BACKLOG_MOST_BYTES) -> None:
        self.dropped = 0
        self._target = target
        self._backlog_most = backlog_most_bytes
        self._lines: list[bytes] = []
        self._size = 0
        self._lock = threading.Lock()
        self._waiting = threading.Event()
        self._stopping = False
        self._failing = False  # told once, until it works again
        self._descriptor = self._open()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def msg(self, line: bytes) -> None:
        """Add one line, newline included; dropped and counted if the backlog is full."""
        with self._lock:
            if self._size + len(line) > self._backlog_most:
                self.dropped += 1
                return
            self._lines.append(line)
            self._size += len(line)
        if not self._waiting.is_set():
            self._waiting.set()

    def close(self, within_s: float = 5.0) -> None:
        """Write what is left, at most ``within_s``, and stop."""
        self._stopping = True
        self._waiting.set()
        self._thread.join(within_s)

    def _run(self) -> None:
        while True:
            self._waiting.wait()
            self._waiting.clear()
            stopping = self._stopping
            with self._lock:
                lines, self._lines, self._size = self._lines, [], 0
            if lines:
                self._write(b"".join(lines))
            if stopping:
                break
            # Gather for a moment: one write for many lines.
            threading.Event().wait(FLUSH_S)
        if self._target is not None:
            os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        try:
            self._reopen_if_rotated()
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            with self._lock:
                self.dropped += data.count(b"\n")
            if not self._failing:
                _log.error("access_log_not_written", error=str(error))
            self._failing = True
        else:
            self._failing = False

    def _open(self) -> int:
        if self._target is None:
            return 1
        self._target.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def _reopen_if_rotated(self) -> None:
        if self._target is None:
            return
        ours = os.fstat(self._descriptor)
        try:
            there = self._target.stat()
        except FileNotFoundError:
            there = None
        if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):
            fresh = self._open()
            os.close(self._descriptor)
            self._descriptor = fresh


def open_access_log(target: str) -> tuple[AccessLog | None, Callable[[], None]]:
    """``-`` = standard output, ``off`` = none, else a file. Gives the log and how to close it. Raises ``OSError``."""
    if target == "off":
        return None, lambda: None
    sink = BatchWriter(None if target == "-" else Path(target))
    return AccessLog(sink), sink.close
