"""The endpoints of the generation in force: their connections, breakers, load and what control reports of them.

State of an endpoint survives a reload as long as its address does; what a reload removes finishes its streams and
closes. ``Generation`` pairs a table with the fleet view that belongs to it, and a request keeps both to its end.
"""

import asyncio
import math
import ssl
from collections.abc import Callable, Iterable
from typing import Final

from gateway.core.balance import Ring, choose, pressure
from gateway.core.breaker import Breaker
from gateway.dataplane.board import Board
from gateway.model.enums import EndpointState
from gateway.model.messages import EndpointReport
from gateway.model.precision import rank
from gateway.model.table import Endpoint, Pool, Table
from gateway.wire.pool import ConnectionPool

OFFERED: Final = frozenset({EndpointState.READY, EndpointState.UNKNOWN})
_QUARANTINED: Final = EndpointState.QUARANTINED
_LOADING: Final = EndpointState.LOADING


class EndpointView:
    """One endpoint as this worker knows it. ``base`` and ``head`` begin a request to it: path and Host field."""

    __slots__ = (
        "base",
        "breaker",
        "connections",
        "endpoint",
        "head",
        "inflight",
        "kv_usage",
        "name",
        "offered",
        "reported",
        "reported_at",
        "row",
        "running",
        "waiting",
    )

    def __init__(self, endpoint: Endpoint, connections: ConnectionPool) -> None:
        self.follow(endpoint)
        self.connections = connections
        self.breaker = Breaker()
        self.inflight = 0
        self.reported = EndpointState.UNKNOWN
        self.offered = True
        self.reported_at = float("-inf")
        self.running = self.waiting = self.kv_usage = -1.0
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        default = 443 if endpoint.scheme == "https" else 80
        self.head = b"Host: %s\r\n" % (host if endpoint.port == default else f"{host}:{endpoint.port}").encode()

    def follow(self, endpoint: Endpoint) -> None:
        """The endpoint as the generation in force has it. The address is the same for as long as this lives."""
        self.endpoint = endpoint
        self.name = endpoint.name
        self.row = endpoint.slot
        self.base = endpoint.base_path.encode()

    def state(self, now: float) -> EndpointState:
        """The state that counts for routing and for reports."""
        if not self.offered:
            return self.reported
        return EndpointState.EJECTED if self.breaker.ejected(now) else self.reported

    def report(self, report: EndpointReport, now: float) -> None:
        """Take over what control's probes found."""
        self.reported = EndpointState(report.state)
        self.offered = self.reported in OFFERED
        self.reported_at = now - report.age_s
        self.running, self.waiting, self.kv_usage = report.running, report.waiting, report.kv_usage


class Told:
    """What answers say of a decision: header lines for one bucket and rule in one pool."""

    __slots__ = ("lines", "rule")

    def __init__(self, pool: Pool, bucket: str, rule: str) -> None:
        self.rule = rule
        self.lines = (
            b"x-quantgate-bucket: %b\r\nx-quantgate-pool: %b\r\nx-quantgate-precision: %b\r\nx-quantgate-rule: %b\r\n"
            % (bucket.encode(), pool.name.encode(), pool.precision.label.encode(), rule.encode())
        )


class PoolView:
    """A pool of one generation over the endpoints' living state. ``credentials``: its Authorization line, if any."""

    __slots__ = ("_limited", "_ring", "_told", "board", "credentials", "endpoints", "name", "pool")

    def __init__(self, pool: Pool, endpoints: list[EndpointView], board: Board, ring: Ring | None) -> None:
        self.pool = pool
        self.name = pool.name
        self.credentials = b"Authorization: %b\r\n" % pool.authorization if pool.authorization else b""
        self.endpoints = endpoints
        self.board = board
        self._limited = pool.limits.inflight is not None
        self._ring = ring
        self._told: dict[str, Told] = {}  # by bucket, of which the policy bounds the number

    def told(self, bucket: str, rule: str) -> bytes:
        """Header lines that say where a request went and why; requests of a bucket mostly share their rule."""
        told = self._told.get(bucket)
        if told is None or told.rule != rule:
            told = self._told[bucket] = Told(self.pool, bucket, rule)
        return told.lines

    def full(self) -> bool:
        """Whether the pool's own in-flight limit is reached, over all workers."""
        return self._limited and self.room() <= 0

    def room(self) -> float:
        """Places left under the pool's own in-flight limit, over all workers."""
        limit = self.pool.limits.inflight
        if limit is None:
            return math.inf
        return limit - sum(self.board.inflight(view.row) for view in self.endpoints)

    def healthy(self, now: float, tried: Iterable[EndpointView]) -> list[int]:
        """Indexes of endpoints that are offered new requests and were not tried yet."""
        return [
            index
            for index, view in enumerate(self.endpoints)
            if view.offered and not view.breaker.ejected(now) and view not in tried
        ]

    def possible(self, tried: Iterable[EndpointView]) -> list[int]:
        """Indexes to fall back on when none is healthy: everything but quarantined ones (health fails open)."""
        return [
            index
            for index, view in enumerate(self.endpoints)
            if view.reported is not _QUARANTINED and view not in tried
        ]

    def failing(self) -> list[int]:
        """Indexes of endpoints that were ejected, have not served since, and do not say that they are loading."""
        return [
            index
            for index, view in enumerate(self.endpoints)
            if view.breaker.failing and view.reported is not _QUARANTINED and view.reported is not _LOADING
        ]

    def pick(self, allowed: list[int], conversation: bytes, now: float, rand: Callable[[], float]) -> EndpointView:
        """Choose among allowed endpoints by stickiness and load."""
        if len(allowed) == 1 or self._ring is None:
            return self.endpoints[allowed[0]]
        sticky = self._ring.walk(conversation, allowed) if conversation else None

        def load(index: int) -> float:
            view = self.endpoints[index]
            inflight = self.board.inflight(view.row) if view.row >= 0 else view.inflight
            return pressure(inflight, view.running, view.waiting, view.kv_usage, now - view.reported_at)

        return self.endpoints[choose(allowed, load, sticky, rand)]


class Generation:
    """A table and its fleet view, immutable for the requests that hold it."""

    __slots__ = ("lengths", "pools", "ranks", "rollouts", "table")

    def __init__(self, table: Table, pools: dict[str, PoolView]) -> None:
        self.table = table
        self.pools = pools
        self.rollouts = {rollout.name: rollout for rollout in table.rollouts}
        self.ranks = {name: rank(pool.precision) for name, pool in table.pools.items()}
        names = [name for name, _ in table.classifier.lengths]
        self.lengths = (*names, table.classifier.over)

    def length_at(self, index: int) -> str:
        """A length class by its place; the longest for a place of another generation that this one does not have."""
        return self.lengths[min(index, len(self.lengths) - 1)]


class Fleet:
    """Owner of all endpoint views of this worker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, board: Board, clock: Callable[[], float]) -> None:
        self._loop = loop
        self._clock = clock
        self._board = board
        self._tls: ssl.SSLContext | None = None
        self._rings: dict[tuple[str, ...], Ring] = {}
        self.views: dict[tuple[str, str, str, int], EndpointView] = {}

    def prepare(self, table: Table) -> None:
        """Do the expensive part of ``adopt`` beforehand; may run in another thread, and fails without effect."""
        self._rings = {
            names: self._rings.get(names) or Ring(names) for names in map(_names, table.pools.values()) if names
        }
        if self._tls is None and any(
            point.scheme == "https" for pool in table.pools.values() for point in pool.endpoints
        ):
            self._tls = ssl.create_default_context()

    def adopt(self, table: Table) -> Generation:
        """Views for a new table: kept where the address is the same, made where it is new, closed where it is gone."""
        views: dict[tuple[str, str, str, int], EndpointView] = {}
        pools: dict[str, PoolView] = {}
        for name, pool in table.pools.items():
            members = []
            for endpoint in pool.endpoints:
                key = (endpoint.name, endpoint.scheme, endpoint.host, endpoint.port)
                view = self.views.get(key) or EndpointView(endpoint, self._connections(endpoint))
                view.follow(endpoint)
                views[key] = view
                members.append(view)
            names = _names(pool)
            ring = self._rings.get(names) or Ring(names) if names else None
            pools[name] = PoolView(pool, members, self._board, ring)
        gone = [view for key, view in self.views.items() if key not in views]
        self.views = views
        for view in gone:
            view.connections.close()
        return Generation(table, pools)

    def report(self, reports: list[EndpointReport], now: float) -> None:
        """Spread control's reports over the views."""
        by_name = {view.endpoint.name: view for view in self.views.values()}
        for report in reports:
            view = by_name.get(report.endpoint)
            if view is not None:
                view.report(report, now)

    def sweep(self) -> None:
        """Let go of connections that have been idle too long."""
        for view in self.views.values():
            view.connections.sweep()

    def close(self) -> None:
        """Close all idle connections."""
        for view in self.views.values():
            view.connections.close()

    def _connections(self, endpoint: Endpoint) -> ConnectionPool:
        tls = self._tls if endpoint.scheme == "https" else None
        return ConnectionPool(self._loop, endpoint.host, endpoint.port, tls, self._clock)


def _names(pool: Pool) -> tuple[str, ...]:
    """Names on a pool's ring; none for a single endpoint, which needs no choice."""
    return tuple(endpoint.name for endpoint in pool.endpoints) if len(pool.endpoints) > 1 else ()
