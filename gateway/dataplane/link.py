"""The worker's end of the socket to control: tables and endpoint reports come in, outcomes and gauges go out.

Control may die and come back at any time. Then this end dials again, goes on with the table it has, and keeps outcomes
within their buffer's bound. A table is compiled in a thread; applying it is one assignment.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.dataplane.pairs import PairBuffer
from gateway.dataplane.starts import StartCounts
from gateway.model.messages import (
    Apply,
    Endpoints,
    Feedback,
    Hello,
    Outcomes,
    Prepare,
    Prepared,
    Rollouts,
    Stats,
    ToControl,
    ToWorker,
)

FLUSH_S = 0.3  # how old an outcome may grow here: metrics lag by this much, and both ends wake up this often
STATS_S = 1.0
RETRY_S = 0.2
HIGH_WATER = 4 * 1024 * 1024  # bytes on their way to control beyond which outcomes stay in the buffer
WORDS_MOST = 10_000  # feedback that waits for control
_LENGTH = struct.Struct(">I")

Compiled = TypeVar("Compiled")


class ControlLink(Generic[Compiled]):
    """One worker's link. ``compile`` may raise; ``apply`` may not."""

    def __init__(
        self,
        path: Path,
        worker: int,
        pid: int,
        *,
        outcomes: OutcomeBuffer,
        pairs: PairBuffer,
        starts: StartCounts,
        compile: Callable[[Prepare], Compiled],
        apply: Callable[[Compiled], None],
        generation: Callable[[], int],
        report: Callable[[Endpoints], None],
        rollouts: Callable[[Rollouts], None],
        stats: Callable[[], Stats],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._path = path
        self._worker = worker
        self._pid = pid
        self._outcomes = outcomes
        self._pairs = pairs
        self._starts = starts
        self._compile = compile
        self._apply = apply
        self._generation = generation
        self._report = report
        self._rollouts = rollouts
        self._stats = stats
        self._on_error = on_error
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(ToWorker)
        self._writer: asyncio.StreamWriter | None = None
        self._prepared: dict[int, Compiled] = {}
        self._stopping = False
        self._flush_at = self._stats_at = 0.0
        self._words: deque[Feedback] = deque(maxlen=WORDS_MOST)

    async def run(self) -> None:
        """Stay connected until cancelled."""
        while not self._stopping:
            try:
                reader, self._writer = await asyncio.open_unix_connection(str(self._path))
            except OSError:
                await asyncio.sleep(RETRY_S)
                continue
            try:
                self._send(Hello(self._worker, self._pid, self._generation()))
                await self._read(reader)
            except (OSError, asyncio.IncompleteReadError, msgspec.MsgspecError):
                pass
            finally:
                writer, self._writer = self._writer, None
                if writer is not None:
                    writer.close()
            await asyncio.sleep(RETRY_S)

    def tick(self, now: float) -> None:
        """Called often: send outcomes every ``FLUSH_S`` and gauges every ``STATS_S``, while control is there."""
        if now < self._flush_at:
            return
        self._flush_at = now + FLUSH_S * 0.9  # a tick that comes a little early must not wait for the next one
        try:
            self.flush()
            if self._writer is not None and now >= self._stats_at:
                self._stats_at = now + STATS_S * 0.95
                self._send(self._stats())
        except Exception as error:  # one record that cannot be sent must not keep back all that follow
            self._on_error(error)

    def flush(self) -> None:
        """Hand over what is buffered, as far as control takes it."""
        writer = self._writer
        while writer is not None and self._words and _has_room(writer, HIGH_WATER):
            self._send(self._words.popleft())
        self._flush_starts()
        self._flush_pairs()
        while writer is not None and (len(self._outcomes) or self._outcomes.dropped):
            if not _has_room(writer, HIGH_WATER):
                return
            batch, dropped = self._outcomes.take()
            captures_dropped, self._outcomes.captures_dropped = self._outcomes.captures_dropped, 0
            self._send(Outcomes(self._worker, dropped, self._encoder.encode(batch), captures_dropped))

    def _flush_starts(self) -> None:
        """Before the outcomes of the same moment, which they announce."""
        message = self._starts.take(self._worker) if self._writer is not None else None
        if message is not None:
            self._send(message)

    def _flush_pairs(self) -> None:
        writer = self._writer
        while writer is not None and _has_room(writer, HIGH_WATER // 2):  # pairs wait long before outcomes do
            message = self._pairs.take(self._worker)
            if message is None:
                return
            self._send(message)

    def say(self, feedback: Feedback) -> None:
        """Hand on a word of an application; kept, a few at most, while control is away."""
        self._words.append(feedback)
        self.flush()

    async def finish(self, within_s: float) -> None:
        """Send the last outcomes before the worker ends."""
        self._stopping = True
        writer = self._writer
        if writer is None:
            return
        self.flush()
        self._send(self._stats())
        try:
            async with asyncio.timeout(within_s):
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            return

    def _send(self, message: ToControl) -> None:
        if self._writer is not None and not self._writer.is_closing():
            data = self._encoder.encode(message)
            self._writer.write(_LENGTH.pack(len(data)) + data)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            (length,) = _LENGTH.unpack(await reader.readexactly(4))
            message = self._decoder.decode(await reader.readexactly(length))
            try:
                await self._take(message)
            except Exception as error:  # a control of another version may say what is news here
                self._on_error(error)

    async def _take(self, message: ToWorker) -> None:
        match message:
            case Prepare():
                await self._prepare(message)
            case Apply():
                self._use(message.generation)
            case Endpoints():
                self._report(message)
            case Rollouts():
                self._rollouts(message)

    async def _prepare(self, message: Prepare) -> None:
        error = ""
        try:
            compiled = await asyncio.get_running_loop().run_in_executor(None, self._compile, message)
            self._prepared = {message.generation: compiled}
        except Exception as problem:  # whatever it is, control must hear it and the old table stays
            error = f"{type(problem).__name__}: {problem}"
        self._send(Prepared(self._worker, message.generation, error))

    def _use(self, generation: int) -> None:
        found = self._prepared.pop(generation, None)
        if found is not None:
            self._apply(found)


def _has_room(writer: asyncio.StreamWriter, most_bytes: int) -> bool:
    """Whether control takes what is sent, and not more than so much is on its way."""
    return not writer.is_closing() and writer.transport.get_write_buffer_size() <= most_bytes
