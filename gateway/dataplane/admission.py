"""Permits: a tenant's limits first, then room in a pool; wait within a deadline, or 429 with Retry-After.

Limits hold over all workers of the host through the shared board. A request that finds every eligible pool full waits
in arrival order, more important tiers in front where the policy ranks them; each request that ends lets the queue try
again, and so does a tick (soon after ``on_wait``), because room may come free in another worker.
"""

from collections import deque
from collections.abc import Callable, Sequence

from gateway.core.arms import rolled_back_words
from gateway.dataplane.board import ROWS, Board
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.forward import Forwarder
from gateway.dataplane.identity import Caller
from gateway.dataplane.quota import UNLIMITED, Quota, limited, reset_s, too_long
from gateway.errors import ApiError
from gateway.model.enums import Result
from gateway.model.table import Tenant
from gateway.wire.wheel import Wheel

FULL = "Every pool that may serve this request is at its limit, and so is the queue."


class Admission:
    """The tenant limits and the waiting room of one worker."""

    def __init__(self, board: Board, wheel: Wheel, clock: Callable[[], float], forwarder: Forwarder) -> None:
        self._board = board
        self._wheel = wheel
        self._clock = clock
        self._forwarder = forwarder
        self._waiting: deque[Exchange] = deque()
        self._quotas: list[Quota | None] = [None] * ROWS
        self.make_room: Callable[[Sequence[str]], bool] = lambda _: False  # ends shadow legs in these pools, if any
        self.on_wait: Callable[[], None] = lambda: None  # a request begins to wait
        self.inflight = 0

    @property
    def queued(self) -> int:
        """Requests that wait for room."""
        return len(self._waiting)

    def admit(self, exchange: Exchange) -> None:
        """Start the request, let it wait, or refuse it."""
        settings = exchange.generation.table.settings
        self._charge(exchange)
        if self.inflight >= settings.max_inflight:
            self._shed(exchange, f"The gateway is at its limit of {settings.max_inflight} requests.")
            return
        self.inflight += 1
        exchange.admitted = True
        may_wait = settings.queue_s > 0
        if (not self._waiting or not may_wait) and self._launch(exchange):
            return
        if may_wait:
            self._wait(exchange, settings.queue_most)
        else:
            self._shed(exchange, FULL)

    def _wait(self, exchange: Exchange, most: int) -> None:
        """In line with who waits already, it starts if its pools have room for all in front of it; else it waits.

        Of too many the last in line is refused, and that may be somebody of a less important tier.
        """
        waiting = self._waiting
        while waiting and waiting[-1].finished:
            waiting.pop()
        hopeless = len(waiting) >= most and self._is_behind(exchange)
        self._line_up(exchange)
        if not hopeless:
            self._try_all(exchange)
        if exchange.admitted_at or exchange.finished:
            return
        if len(self._waiting) > most:
            last = self._waiting.pop()
            self._wheel.discard(last)
            self._shed(last, FULL)
            if last is exchange:
                return
        exchange.queued_at = self._clock()
        exchange.due = exchange.queued_at + exchange.generation.table.settings.queue_s
        self._wheel.add(exchange)
        self.on_wait()

    def _is_behind(self, exchange: Exchange) -> bool:
        """Whether somebody as important waits for the same pools: then they are full, and need not be asked."""
        pools, rank = _pools(exchange), _rank(exchange)
        return any(_pools(one) == pools and not one.finished and _rank(one) <= rank for one in self._waiting)

    def _line_up(self, exchange: Exchange) -> None:
        """Behind everybody of its tier and of more important ones; without tiers, at the end."""
        waiting, rank = self._waiting, _rank(exchange)
        place = len(waiting)
        while place and _rank(waiting[place - 1]) > rank:
            place -= 1
        waiting.insert(place, exchange)

    def _try_all(self, exchange: Exchange) -> None:
        """Start who can, in line, so that nobody is overtaken at a pool; for this one shadow legs give way."""
        self.drain()
        if not exchange.admitted_at and not exchange.finished and self.make_room(_pools(exchange)):
            self.drain()

    def _launch(self, exchange: Exchange) -> bool:
        """Start it, if need be on a place that a shadow leg gives up."""
        if self._forwarder.launch(exchange):
            return True
        return self.make_room(_pools(exchange)) and self._forwarder.launch(exchange)

    def drain(self) -> None:
        """Start what waits and finds room now, in order; a full pool does not block requests for another one."""
        waiting = self._waiting
        if not waiting:
            return
        self._waiting = still = deque[Exchange]()
        blocked: set[tuple[str, ...]] = set()
        for exchange in waiting:
            if exchange.finished:
                continue
            pools = _pools(exchange)
            try:
                started = pools not in blocked and self._forwarder.launch(exchange)
            except Exception as error:  # this request's fault must not reach the one whose end let it try
                self._forwarder.on_fault(exchange, error)
                continue
            if started:
                self._wheel.discard(exchange)
            else:
                blocked.add(pools)
                still.append(exchange)

    def leave(self, exchange: Exchange) -> None:
        """A request ended: give back what ``admit`` took, and correct its tokens by what was really used."""
        self._wheel.discard(exchange)
        if exchange.admitted:
            exchange.admitted = False
            self.inflight -= 1
        row = exchange.tenant_row
        if row < 0:
            return
        self._board.leave(row)
        charged = exchange.charged_tokens
        used = _used(exchange)
        if used > charged:
            now = exchange.wall_at + self._clock() - exchange.began_at
            self._board.charge(row, now, 0, used - charged)  # they came to be since then, and count from now on
        elif used < charged and (used or not exchange.attempts):
            self._board.charge(row, exchange.wall_at, 0, used - charged)

    def count(self, tenant: Tenant, wall_s: float) -> None:
        """Count what is no request to a pool, such as feedback, as one of the tenant's requests a minute."""
        most = tenant.limits.requests_per_minute
        if most is None or tenant.slot < 0:
            return
        if self._board.used(tenant.slot, wall_s)[0] + 1 > most:
            raise limited("requests per minute", most, self._board.wait_s(tenant.slot, wall_s, most - 1, UNLIMITED))
        self._board.charge(tenant.slot, wall_s, 1, 0)

    def _charge(self, exchange: Exchange) -> None:
        caller, profile = exchange.caller, exchange.profile
        assert caller is not None and profile is not None  # noqa: S101 - admitted after classification only
        if not caller.limited:
            return
        row = caller.tenant.slot
        board, wall, quota, size = self._board, exchange.wall_at, self._quota(row, caller), profile.prompt_tokens
        if quota.per_minute:
            requests, tokens = board.used(row, wall)
            over = requests + 1 > quota.requests or tokens + size > quota.tokens
            if over and size <= quota.tokens:  # one answer names one time: that of ``Retry-After``
                seconds = board.wait_s(row, wall, quota.requests - 1, quota.tokens - size)
            else:
                seconds = reset_s(wall)
            exchange.extra_fields = quota.told(exchange.extra_fields, requests + 1, tokens + size, seconds)
            if over:
                raise _over(quota, requests, size, seconds)
        if 0 <= quota.inflight <= board.inflight(row):
            raise limited("requests in flight", quota.inflight, 1)
        exchange.tenant_row = row
        exchange.charged_tokens = size
        board.enter(row)
        board.charge(row, wall, 1, size)

    def _quota(self, row: int, caller: Caller) -> Quota:
        """The caller's quota, made anew when another generation has changed who it is."""
        quota = self._quotas[row]
        if quota is None or quota.caller is not caller:
            quota = self._quotas[row] = Quota(caller)
        return quota

    def _shed(self, exchange: Exchange, message: str) -> None:
        message += rolled_back_words(exchange.decision)
        exchange.refuse(ApiError(429, "capacity_exceeded", message, headers=(("Retry-After", "1"),)), Result.SHED)


def _over(quota: Quota, requests: float, size: int, seconds: int) -> ApiError:
    """Which limit of a minute stands against a request; there will be room in ``seconds``."""
    if size > quota.tokens:
        return too_long(size, quota.tokens)
    if requests + 1 > quota.requests:
        return limited("requests per minute", quota.requests, seconds)
    return limited("tokens per minute", quota.tokens, seconds)


def _pools(exchange: Exchange) -> tuple[str, ...]:
    """Where it may go, in the decision's order."""
    return exchange.decision.pools if exchange.decision is not None else ()


def _used(exchange: Exchange) -> int:
    """Prompt and completion tokens of a request that ended; 0 if it had no output and the pool did not say.

    A stream that broke off, or that its client left, has said too little or nothing: its events count as tokens.
    """
    usage, events = exchange.usage, exchange.events
    prompt, completion = usage.prompt_tokens, max(usage.completion_tokens, 0)
    whole = usage.done or usage.finish_reason != ""
    if usage.completion_tokens < 0 or not whole:
        completion = max(completion, events)
    if prompt < 0:
        prompt = exchange.charged_tokens if events else 0
    return prompt + completion


def _rank(exchange: Exchange) -> int:
    """The place of its tier, 0 = most important."""
    tiers, caller = exchange.generation.table.settings.queue_tiers, exchange.caller
    tier = caller.tenant.tier if caller is not None else ""
    return tiers.index(tier) if tier in tiers else len(tiers)
