"""One worker: the stages wired together, the listening socket, the link to control, and the graceful end.

Owns sockets and nothing that must survive. ``app.worker_main`` gives it a loop, clocks and randomness.
"""

import asyncio
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from gateway.dataplane.admission import Admission
from gateway.dataplane.attempt import streams
from gateway.dataplane.board import Board
from gateway.dataplane.conversations import Conversations
from gateway.dataplane.fleet import Fleet
from gateway.dataplane.forward import Forwarder
from gateway.dataplane.identity import Keyring
from gateway.dataplane.link import ControlLink
from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.dataplane.pairs import PairBuffer
from gateway.dataplane.pipeline import Current, Pipeline
from gateway.dataplane.shadow import Mirror
from gateway.dataplane.sizing import Sizes, Sizing
from gateway.model.messages import LATCHED_FILE, EndpointLocal, Endpoints, Feedback, Prepare, Rollouts, Stats
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.wire.server import ServerConnection, ServerContext
from gateway.wire.wheel import Wheel

SWITCH_S = 0.0005  # GIL hand-over: a thread that reads a large body must not hold the loop for the default 5 ms
TICK_S = 0.1  # between looks at the clock, while nobody waits for room
QUEUED_TICK_S = 0.02  # while somebody does: room may come free in another worker, which tells nobody
SWEEP_S = 1.0
BUSY_LAG_S = 0.1  # a loop this late has no time for mirrored traffic


class WorkerOptions(msgspec.Struct, frozen=True):
    """How one worker is started. ``id_prefix`` makes request ids unique over workers and restarts."""

    index: int
    workers: int
    host: str
    port: int
    control_socket: Path
    state_dir: Path
    pid: int
    id_prefix: str
    drain_s: float = 30.0


class Worker:
    """The data plane of one process."""

    def __init__(
        self,
        options: WorkerOptions,
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        rand: Callable[[], float],
        secret: Callable[[str], str],
        log_error: Callable[[str, BaseException], None],
    ) -> None:
        self._options = options
        self._loop = loop
        self._clock = clock
        self._secret = secret
        self._log_error = log_error
        self._generation = 0
        self._lag_s = 0.0
        self._has_policy = asyncio.Event()
        self.wheel = Wheel(clock)
        board = options.state_dir / f"board-{options.workers}.bin"
        self.board = Board(board, options.index, options.workers, log_error)
        self.outcomes = OutcomeBuffer()
        self.fleet = Fleet(loop, self.board, clock)
        self.sizing = Sizing()
        self.forwarder = Forwarder(wheel=self.wheel, board=self.board, clock=clock, rand=rand)
        self.admission = Admission(self.board, self.wheel, clock, self.forwarder)
        self.forwarder.on_release = self.admission.drain
        self.pairs = PairBuffer()
        bodies = ThreadPoolExecutor(1, thread_name_prefix="bodies")
        self.mirror = Mirror(
            forwarder=self.forwarder,
            wheel=self.wheel,
            buffer=self.pairs,
            executor=bodies,
            clock=clock,
            soon=loop.call_soon_threadsafe,
            busy=self._busy,
            on_error=lambda error: log_error("shadow", error),
            worker=options.index,
            workers=options.workers,
        )
        self.admission.make_room = self.mirror.make_room
        self.pipeline = Pipeline(
            admission=self.admission,
            conversations=Conversations(options.state_dir / "conversations.bin", log_error),
            mirror=self.mirror,
            sizing=self.sizing,
            executor=bodies,
            soon=loop.call_soon_threadsafe,
            clock=clock,
            wall=wall,
            rand=rand,
            id_prefix=options.id_prefix,
            outcomes=self.outcomes,
            on_error=lambda error: log_error("request", error),
            on_feedback=self._say,
            index=options.index,
        )
        self.forwarder.on_fault = self.pipeline.fault
        self.context = ServerContext(self.pipeline, self.wheel, clock=clock, wall=wall, soon=loop.call_soon)
        self.link = ControlLink(
            options.control_socket,
            options.index,
            options.pid,
            outcomes=self.outcomes,
            pairs=self.pairs,
            starts=self.forwarder.starts,
            compile=self._compile,
            apply=self._apply,
            generation=lambda: self._generation,
            report=self._report,
            rollouts=self._rollouts,
            stats=self._stats,
            on_error=lambda error: log_error("link", error),
        )
        self._timer: asyncio.TimerHandle | None = None
        self._tick_due = self._sweep_at = 0.0
        self._server: asyncio.AbstractServer | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set, then drain: no new connections, running answers finish, outcomes are sent."""
        sys.setswitchinterval(SWITCH_S)
        self._start_from_snapshot()
        self._tick_within(TICK_S)
        self.admission.on_wait = lambda: self._tick_within(QUEUED_TICK_S)
        self._link_task = self._loop.create_task(self.link.run(), name="control link")
        await self._wait_for_policy(stop)
        self._server = await self._loop.create_server(
            lambda: ServerConnection(self.context), sock=listen_socket(self._options.host, self._options.port)
        )
        await stop.wait()
        await self._drain()

    async def _wait_for_policy(self, stop: asyncio.Event) -> None:
        """The first table, or the end: a worker without a policy does not open its port."""
        waits = [self._loop.create_task(event.wait()) for event in (self._has_policy, stop)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _drain(self) -> None:
        if self._server is not None:
            self._server.close()
        self.context.drain()
        end = self._clock() + self._options.drain_s
        while self.context.connections and self._clock() < end:  # noqa: ASYNC110 - ends by time as well
            await asyncio.sleep(0.02)
        for connection in list(self.context.connections):
            connection.cut()
        self.mirror.stop()
        await self.link.finish(2.0)
        self._link_task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self.fleet.close()

    # tables

    def _compile(self, message: Prepare) -> tuple[Table, Keyring, Sizes]:
        """In a thread: everything about a new generation that may fail or take long."""
        table = compile_table(message.document, message.generation, message.slots, self._secret)
        self.fleet.prepare(table)
        return (table, Keyring(table), Sizes(table))

    def _apply(self, compiled: tuple[Table, Keyring, Sizes]) -> None:
        """On the loop: one assignment makes the generation the one that new requests read."""
        table, keyring, sizes = compiled
        self.pipeline.current = Current(self.fleet.adopt(table), keyring, sizes)
        self.context.limits.max_body_bytes = table.settings.max_body_bytes
        self.forwarder.budget.ratio = table.settings.retry_budget
        self._generation = table.generation
        self.mirror.apply(table)
        self._has_policy.set()

    def _start_from_snapshot(self) -> None:
        """Serve by the last applied generation at once, even if control is away, and by the shares latched last."""
        self._latch_from_disk()
        path = self._options.state_dir / "snapshot.msgpack"
        try:
            message = msgspec.msgpack.decode(path.read_bytes(), type=Prepare)
            self._apply(self._compile(message))
        except FileNotFoundError:
            return
        except Exception as error:  # a snapshot of another version; control will send a good one
            self._log_error("snapshot", error)

    def _latch_from_disk(self) -> None:
        """What control stored before it acted. Without it every share is unknown, which counts as none."""
        try:
            stored = (self._options.state_dir / LATCHED_FILE).read_bytes()
            self._rollouts(msgspec.msgpack.decode(stored, type=Rollouts))
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            self._log_error("rollouts", error)

    def _report(self, message: Endpoints) -> None:
        self.fleet.report(message.reports, self._clock())

    def _rollouts(self, message: Rollouts) -> None:
        """Shares of rollouts, taken over as a whole: one assignment."""
        self.pipeline.deciding.shares = message.shares

    # outcomes and gauges

    def _busy(self) -> bool:
        """Clients wait for room, or the loop is behind: shadow traffic gives way."""
        return self.admission.queued > 0 or self._lag_s > BUSY_LAG_S

    def _say(self, feedback: Feedback) -> None:
        """Raises ``ApiError`` if the tenant has said as much as it may this minute."""
        current = self.pipeline.current
        table = current.generation.table if current is not None else None
        tenant = (table.tenants.get(feedback.tenant) or table.anonymous) if table is not None else None
        if tenant is not None:
            self.admission.count(tenant, feedback.at)
        self.link.say(feedback)

    def _stats(self) -> Stats:
        now = self._clock()
        inflight: dict[str, int] = {}
        endpoints = []
        for view in self.fleet.views.values():
            pool = view.endpoint.pool
            inflight[pool] = inflight.get(pool, 0) + view.inflight
            state = view.state(now).value
            endpoints.append(EndpointLocal(view.endpoint.name, state, view.inflight, view.connections.idle))
        lag_s, self._lag_s = self._lag_s, 0.0
        relayed = sum(1 for connection in self.context.connections if streams(connection.work))
        return Stats(
            self._options.index,
            self._generation,
            len(self.context.connections),
            relayed,
            self.admission.queued,
            inflight,
            endpoints,
            lag_s,
            self.context.draining,
        )

    def _tick(self) -> None:
        """Everything that is due now and then, in one go: a loop that wakes up seldom leaves the caches to requests.

        Also finds the loop's worst lag, which is how late this is called.
        """
        now = self._clock()
        self._lag_s = max(self._lag_s, now - self._tick_due)
        self._timer = None
        self._tick_within(QUEUED_TICK_S if self.admission.queued else TICK_S)
        self.link.tick(now)
        self.admission.drain()
        if self._busy():
            self.mirror.shed_waiting()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self.fleet.sweep()
        self.wheel.turn()

    def _tick_within(self, seconds: float) -> None:
        """The next tick comes after so long, or earlier if it was to come earlier."""
        due = self._clock() + seconds
        if self._timer is not None:
            if self._tick_due <= due:
                return
            self._timer.cancel()
        self._tick_due = due
        self._timer = self._loop.call_later(seconds, self._tick)


def listen_socket(host: str, port: int) -> socket.socket:
    """A listening socket that other workers of this host may share. Raises OSError with the address in its text."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((host, port))
    sock.listen(4096)
    sock.setblocking(False)
    return sock
