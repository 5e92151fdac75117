"""The access log: one JSON line per request, with the decision and its reasons. No prompt or answer text, no key.

Owns the form of a line and its way out: lines are made on the loop, a batch at a time, and written by one thread, so
that a slow disk or a full pipe holds up nothing. What does not fit into the bounded backlog is dropped and counted. A
file that was rotated away is opened anew. Called by ``control.recorder``; configured by ``app.control_main``.
"""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog
from msgspec.structs import astuple

from gateway.control.series import Counter
from gateway.core.batch import Batch, ByKind, numbers
from gateway.core.columns import milliseconds
from gateway.model.outcome import Attempt, Kind

BACKLOG_MOST_BYTES = 16 * 1024 * 1024
# Names a client can make up are cut; everything else in a line is bounded by the policy or an enum.
NAME_MOST_CHARS = 128

Head = tuple[msgspec.Raw, msgspec.Raw]

_ENCODER = msgspec.json.Encoder()
_UNKNOWN = -1.0  # a duration that is left out: the encoder knows a default by its identity

_log = structlog.get_logger("control.access_log")


class AccessAttempt(msgspec.Struct, omit_defaults=True):
    """One try at one endpoint, in a line. ``started_ms`` counts from the arrival of the request."""

    pool: str
    endpoint: str
    status: int
    started_ms: float
    took_ms: float
    failure: str = ""


class AnsweringAttempt(msgspec.Struct):
    """The only attempt of a request, in a line. ``pool`` is its name with the fields after it: their JSON is made once
    a kind."""

    pool: msgspec.Raw
    started_ms: float
    took_ms: float


class KindFields(msgspec.Struct, omit_defaults=True):
    """The fields of a line that all requests of a kind share. What does not apply is left out."""

    worker: int
    generation: int
    api: str
    status: int
    result: str
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


class AccessLine(msgspec.Struct, omit_defaults=True):
    """One line. Durations in milliseconds; a field that is unknown or does not apply is left out.

    ``event`` is the word ``request`` with the ``KindFields`` after it: their JSON is made once a kind.
    """

    at: datetime
    request_id: str
    event: msgspec.Raw
    total_ms: float
    bytes_in: int
    bytes_out: int
    trace_id: str = ""
    attempts: tuple[AccessAttempt | AnsweringAttempt, ...] = ()
    queue_ms: float = _UNKNOWN
    overhead_ms: float = _UNKNOWN
    ttft_ms: float = _UNKNOWN
    tpot_ms: float = _UNKNOWN
    longest_gap_ms: float = _UNKNOWN
    prompt_tokens_estimated: int = -1
    prompt_tokens: int = -1
    cached_tokens: int = -1
    completion_tokens: int = -1
    events: int = 0
    conversation: str = ""


def lines_of(batch: Batch, heads: Iterable[Head]) -> bytes:
    """The lines of a batch, each ended; ``heads`` are those of its kinds. By position: keywords double the cost."""
    events, answered = zip(*heads, strict=True)
    return _ENCODER.encode_lines(
        map(
            AccessLine,
            msgspec.convert(numbers(batch.at), list[datetime], strict=False),  # in UTC
            batch.request_id,
            events,
            _ms(batch.total_s),
            batch.bytes_in,
            batch.bytes_out,
            batch.trace_id,
            _attempts(batch, answered),
            _ms(batch.queue_s),
            _ms(batch.overhead_s),
            _ms(batch.ttft_s),
            _ms(batch.per_token_s),
            _ms(batch.longest_gap_s),
            batch.prompt_tokens_estimated,
            batch.prompt_tokens,
            batch.cached_tokens,
            batch.completion_tokens,
            batch.events,
            batch.conversation,
        )
    )


def head_of(kind: Kind) -> Head:
    """What every line of a kind begins with, and the attempt that answered where there was no other."""
    values = {name: getattr(kind, name) for name in KindFields.__struct_fields__}
    cut = {name: values[name][:NAME_MOST_CHARS] for name in ("model", "adapter")}
    event = b'"request",' + _ENCODER.encode(KindFields(**{**values, **cut}))[1:-1]
    pool, endpoint = _ENCODER.encode(kind.pool), _ENCODER.encode(kind.endpoint)
    return msgspec.Raw(event), msgspec.Raw(b'%b,"endpoint":%b,"status":%d' % (pool, endpoint, kind.status))


def _attempts(batch: Batch, answered: Iterable[msgspec.Raw]) -> list[tuple[Any, ...]]:
    """The attempts of each request: nearly always the one that answered."""
    started_ms, took_ms = _ms(batch.started_s), _ms(batch.took_s)
    found: list[tuple[Any, ...]] = list(zip(map(AnsweringAttempt, answered, started_ms, took_ms), strict=True))
    for place, tried in batch.other_attempts():
        found[place] = tuple(map(_attempt, tried))
    return found


def _ms(durations_s: Sequence[float]) -> list[Any]:
    return milliseconds(numbers(durations_s), _UNKNOWN)


def _attempt(tried: Attempt) -> AccessAttempt:
    pool, endpoint, status, failure, started_s, took_s = astuple(tried)
    started_ms, took_ms = _ms([started_s, took_s])
    return AccessAttempt(pool, endpoint, status, started_ms, took_ms, failure)


class AccessLog:
    """Writes a line per outcome to ``sink``. Off (and free) while ``enabled`` is false."""

    def __init__(self, sink: "BatchWriter") -> None:
        self.enabled = True
        self.dropped = Counter(
            "quantgate_access_log_dropped_total", "Access log lines lost because they could not be written fast enough."
        )
        self.dropped.add((), 0.0)  # from the start at 0: an increase from nothing to 1 is none
        self._sink = sink
        self._told = 0
        self._heads = ByKind(head_of)

    def take_batch(self, batch: Batch) -> None:
        """Write the lines of a batch."""
        if self.enabled and batch.kind:
            self._sink.write(lines_of(batch, self._heads.of(batch)), len(batch.kind))
        if self._sink.dropped != self._told:
            self.dropped.add((), self._sink.dropped - self._told)
            self._told = self._sink.dropped


class BatchWriter:
    """A bounded backlog of lines and the thread that writes it. ``target`` None = standard output."""

    def __init__(self, target: Path | None, backlog_most_bytes: int = BACKLOG_MOST_BYTES) -> None:
        self.dropped = 0
        self._target = target
        self._backlog_most = backlog_most_bytes
        self._waiting: list[bytes] = []
        self._size = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._failing = False  # told once, until it works again
        self._descriptor = self._open()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def write(self, lines: bytes, number: int) -> None:
        """Add so many lines, each ended; dropped and counted if they do not fit into the backlog."""
        with self._lock:
            if self._size + len(lines) > self._backlog_most:
                self.dropped += number
                return
            self._waiting.append(lines)
            self._size += len(lines)
        self._wake.set()

    def close(self, within_s: float = 5.0) -> None:
        """Write what is left, at most ``within_s``, and stop."""
        self._stopping = True
        self._wake.set()
        self._thread.join(within_s)

    def _run(self) -> None:
        stopping = False
        while not stopping:
            self._wake.wait()
            self._wake.clear()
            stopping = self._stopping
            with self._lock:
                waiting, self._waiting, self._size = self._waiting, [], 0
            if waiting:
                self._write(b"".join(waiting))
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


class AccessLogError(Exception):
    """The file cannot be opened; the message says why and what to do."""


def open_access_log(target: str) -> tuple[AccessLog | None, Callable[[], None]]:
    """``-`` = standard output, ``off`` = none, else a file. Gives the log and how to close it. Raises
    ``AccessLogError``."""
    if target == "off":
        return None, lambda: None
    try:
        sink = BatchWriter(None if target == "-" else Path(target))
    except OSError as error:
        why = error.strerror or error
        raise AccessLogError(
            f"--access-log {target} cannot be written: {why}; name a file that this user may write, '-' or off"
        ) from error
    return AccessLog(sink), sink.close
