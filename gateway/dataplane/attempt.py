"""What an attempt holds while it runs: a place on the endpoint, a connection or a dial, and a deadline.

The base of ``relay.Relay``, which adds what the answer means. Everything taken here is given back in ``release``, once.
"""

import enum
from typing import TYPE_CHECKING

from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import EndpointView, PoolView
from gateway.model.enums import Failure
from gateway.wire.client import ClientConnection
from gateway.wire.pool import Dial
from gateway.wire.wheel import NEVER, Due

if TYPE_CHECKING:
    from gateway.dataplane.forward import Forwarder


class State(enum.Enum):
    """Where an attempt stands."""

    DIALLING = 1
    WAITING = 2  # for the answer's head
    COLLECTING = 3  # a whole answer, or an error
    HOLDING = 4  # a stream before its first content
    FLOWING = 5  # to the client
    OVER = 6


class Attempt(Due):
    """One try at one endpoint. Subclasses are the connection's listener."""

    __slots__ = (
        "_dial",
        "_head",
        "_payload",
        "_row",
        "began_at",
        "connection",
        "exchange",
        "first_byte_due",
        "forwarder",
        "idle_s",
        "pool",
        "state",
        "status",
        "total_due",
        "view",
    )

    def __init__(self, forwarder: "Forwarder", exchange: Exchange, pool: PoolView, view: EndpointView) -> None:
        super().__init__()
        self.forwarder = forwarder
        self.exchange = exchange
        self.pool = pool
        self.view = view
        self.connection: ClientConnection | None = None
        self.state = State.DIALLING
        self.status = 0
        self.began_at = self.first_byte_due = 0.0
        self._row = view.row
        self._dial: Dial | None = None
        self.total_due = NEVER
        self.idle_s = pool.pool.timeouts.idle_s

    def start(self, head: bytes, payload: bytes) -> None:
        """Send the request on an idle connection, or dial one first."""
        self._head, self._payload = head, payload
        forwarder, timeouts = self.forwarder, self.pool.pool.timeouts
        now = self.began_at = forwarder.clock()
        if timeouts.total_s is not None:
            self.total_due = now + timeouts.total_s
        self.view.inflight += 1
        forwarder.board.enter(self._row)
        connection = self.view.connections.take(now)
        if connection is not None:
            self._send(connection, now)
        else:
            self.dial()

    def dial(self) -> None:
        """Open a fresh connection for the request."""
        self.state = State.DIALLING
        self.expect(self.forwarder.clock() + self.pool.pool.timeouts.connect_s)
        self._dial = self.view.connections.dial(self._dialled)

    def pause(self) -> None:
        """The client is slower than the pool: stop reading, and do not blame the pool for the silence."""
        if self.connection is not None and self.state is State.FLOWING:
            self.connection.pause()
            self.due = self.total_due

    def resume(self) -> None:
        """The client has caught up."""
        if self.connection is not None and self.state is State.FLOWING:
            self.connection.resume()
            self.expect_bytes(self.forwarder.clock())

    def release(self, now: float, *, keep: bool) -> None:
        """Give back everything this attempt holds; ``keep`` the connection for others if it ended cleanly."""
        if self.state is State.OVER:
            return
        self.state = State.OVER
        self.forwarder.wheel.discard(self)
        self.view.inflight -= 1
        self.forwarder.board.leave(self._row)
        if self._dial is not None:
            self._dial.cancel()
            self._dial = None
        connection, self.connection = self.connection, None
        if connection is not None:
            if keep:
                self.view.connections.give_back(connection, now)
            else:
                connection.close()

    def forget_request(self) -> None:
        """Nothing will be sent again: a long prompt need not stay in memory while its answer streams."""
        self._head = self._payload = b""
        self.exchange.body = b""
        self.exchange.request.body = b""

    def failed(self, failure: Failure, message: str) -> None:
        """The attempt failed before anything reached the client."""
        self.forwarder.failed(self, failure, message)

    # deadlines

    def expect(self, due: float) -> None:
        """Set the deadline; never beyond the attempt's total limit."""
        due = min(due, self.total_due)
        sooner = due < self.due
        self.due = due
        if sooner or not self.wheel_slot:
            self.forwarder.wheel.add(self)

    def expect_bytes(self, now: float) -> None:
        """More bytes are due within the idle limit."""
        self.expect(now + self.idle_s)

    def stalled(self, now: float) -> Failure:
        """Which limit a silence has broken."""
        return Failure.TOTAL_TIMEOUT if now >= self.total_due else Failure.IDLE_TIMEOUT

    def on_due(self, now: float) -> None:
        """The deadline passed."""
        raise NotImplementedError

    # inside

    def _dialled(self, connection: ClientConnection | None, reason: str) -> None:
        self._dial = None
        if connection is None and not reason:
            self.failed(Failure.EXHAUSTED, "The gateway has no connection left to reach the pool with.")
        elif connection is None:
            self.failed(Failure.CONNECT, f"Cannot connect to the pool's endpoint: {reason}.")
        else:
            self._send(connection, self.forwarder.clock())

    def _send(self, connection: ClientConnection, now: float) -> None:
        self.state = State.WAITING
        self.connection = connection
        timeouts = self.pool.pool.timeouts
        profile = self.exchange.profile
        wait_s = timeouts.first_byte_s
        if profile is not None:
            wait_s += timeouts.first_byte_per_1k_tokens_s * profile.prompt_tokens / 1000.0
        self.first_byte_due = now + wait_s
        self.expect(self.first_byte_due)
        connection.send(self._head, self._payload, self)  # type: ignore[arg-type]  # Relay is the listener


def streams(work: object) -> bool:
    """Whether a connection's work is an answer asked for as a stream that has begun to come, held back or passed on."""
    if not isinstance(work, Exchange) or not work.facts.stream:
        return False
    relay = work.relay
    return relay is not None and (relay.state is State.HOLDING or relay.state is State.FLOWING)
