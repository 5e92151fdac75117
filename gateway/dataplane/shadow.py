"""Mirrored traffic: candidate and noise legs beside a client's request, never at its cost.

A leg is an exchange of its own whose client is a ``Sink``: it has no socket, so nothing of it can reach anybody. Legs
go through the same forwarder and relay as clients' requests, with the pool's own credentials and names. They start
after the client's request was sent, wait in a bounded queue per rule, are the first thing shed under pressure, give
their place in a full pool to a client, and count against no tenant and no endpoint. A pair is complete when the
client's answer and all legs have ended. A fault in here costs a pair and never a request.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from gateway.core.mirror import Event, chosen, keeps_out, matching, permitted, sampled, shadow_body
from gateway.dataplane.exchange import Exchange, Taking
from gateway.dataplane.forward import Forwarder
from gateway.dataplane.legs import TOO_LONG, baseline_of, end_leg, leg_exchange, leg_of, never_ran
from gateway.dataplane.mirrored import CANDIDATE, NOISE, Job
from gateway.dataplane.pairs import PairBuffer
from gateway.dataplane.places import Places
from gateway.model.enums import Result
from gateway.model.facts import Profile
from gateway.model.pair import Leg
from gateway.model.proving import Shadow
from gateway.model.table import Table
from gateway.wire.wheel import Wheel

INLINE_BYTES = 16 * 1024  # a body up to this size is cleaned on the loop
HELD_MOST_BYTES = 48 * 1024 * 1024  # bodies and answers of unfinished pairs in one worker
RESERVED = 4  # one place in so many under a pool's in-flight limit is left to clients


class Mirror:
    """All shadow traffic of one worker. ``busy`` tells whether clients are waiting for room."""

    def __init__(
        self,
        *,
        forwarder: Forwarder,
        wheel: Wheel,
        buffer: PairBuffer,
        executor: Executor,
        clock: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
        busy: Callable[[], bool],
        on_error: Callable[[BaseException], None],
        worker: int,
        workers: int,
    ) -> None:
        self._forwarder = forwarder
        self._wheel = wheel
        self._buffer = buffer
        self._executor = executor
        self._clock = clock
        self._soon = soon
        self._busy = busy
        self._on_error = on_error
        self._worker, self._workers = worker, workers
        self._places: dict[str, Places] = {}
        self._running: set[Job] = set()
        self.held_bytes = 0

    def consider(self, exchange: Exchange, profile: Profile) -> None:
        """Called once per request, after it was admitted, where the policy has shadow rules."""
        try:
            self._consider(exchange, profile)
        except Exception as error:  # the client's request is under way and goes on
            self._on_error(error)

    def primary_ended(self, job: Job, exchange: Exchange, result: Result) -> None:
        """The client's own request ended, however. Its record is written already."""
        exchange.job = None
        try:
            found = baseline_of(exchange, result, job.places.rule.baseline)
            exchange.body = exchange.request.body = b""
            if isinstance(found, Event):
                self._cancel(job, found)
            else:
                job.primary = found
                self._hold(job, len(found.answer))
            self._ended(job)
        except Exception as error:  # as in ``consider``
            self._on_error(error)
            if job.primary is None and job.lost is None:  # nobody knows what the client got, and the job waits for it
                self._cancel(job, Event.FAULT)
                self._ended(job)

    def apply(self, table: Table) -> None:
        """A policy came into force: what its rules no longer ask for ends now."""
        rules = {rule.name: rule for rule in table.shadows}
        for name, places in list(self._places.items()):
            new, old = rules.get(name), places.rule
            if new is not None and (new.candidate, new.baseline) == (old.candidate, old.baseline):
                places.limit(new, self._worker, self._workers)
            else:
                del self._places[name]
                self._close(places, Event.POLICY_CHANGED)

    def make_room(self, pools: Sequence[str]) -> bool:
        """A client finds these pools full: end the legs that run in them. Whether there were any."""
        ended = False
        for job in list(self._running):
            for kind, leg in list(job.running.items()):
                if job.pool_of(kind) in pools:
                    end_leg(leg, "shed")
                    ended = True
        return ended

    def shed_waiting(self) -> None:
        """Clients are waiting for room: nothing of the queues will start."""
        for places in self._places.values():
            for job in list(places.waiting):
                self._cancel(job, Event.SHED)

    def stop(self) -> None:
        """The worker ends: so do all legs, and what they were for is counted."""
        for places in self._places.values():
            self._close(places, Event.STOPPING)
        self._places.clear()

    # admission of pairs

    def _consider(self, exchange: Exchange, profile: Profile) -> None:
        rules = matching(exchange.generation.table.shadows, profile, exchange.api)
        if not rules:
            return
        key = exchange.conversation or exchange.request_id.encode()
        mirrored = False
        for rule in chosen(rules, key):
            self._buffer.count(rule.name, profile.bucket, Event.ELIGIBLE)
            kinds = [CANDIDATE, NOISE] if sampled(rule.name, NOISE, key, rule.noise) else [CANDIDATE]
            refused = Event.OTHER_RULE if mirrored else self._refusal(rule, exchange, profile, len(kinds))
            self._buffer.count(rule.name, profile.bucket, refused or Event.MIRRORED)
            if refused is None:
                mirrored = True
                self._mirror(self._places[rule.name], exchange, profile, kinds)

    def _refusal(self, rule: Shadow, exchange: Exchange, profile: Profile, legs: int) -> Event | None:
        decision, caller = exchange.decision, exchange.caller
        assert decision is not None and caller is not None  # noqa: S101 - decided before
        kept_out = keeps_out(exchange.facts, tenant_agrees=caller.tenant.shadow)
        if kept_out is not None:
            return kept_out
        if decision.pools[0] != rule.baseline:
            return Event.NOT_BASELINE
        if not permitted(exchange.generation.table, rule, profile):
            return Event.NOT_PERMITTED
        if self._busy():
            return Event.PRESSURE
        if self.held_bytes + len(exchange.body) > HELD_MOST_BYTES:
            return Event.QUEUE_FULL
        now = self._clock()
        places = self._places.get(rule.name)
        if places is None:
            places = self._places[rule.name] = Places(rule, self._worker, self._workers, now)
        return places.admit(legs, now)

    def _mirror(self, places: Places, exchange: Exchange, profile: Profile, kinds: list[str]) -> None:
        if exchange.capture is None:
            exchange.capture = Taking(exchange.body, exchange.generation.table.evidence.answer_bytes)
            exchange.capture_for_pair = True
        job = exchange.job = Job(places, exchange, profile, kinds)
        self.held_bytes += job.held
        body, api = job.body, exchange.api
        try:
            if len(body) <= INLINE_BYTES:
                self._soon(lambda: self._clean(job, lambda: shadow_body(body, api)))
            else:
                future = self._executor.submit(shadow_body, body, api)
                future.add_done_callback(lambda done: self._soon(lambda: self._clean(job, done.result)))
        except Exception as error:  # its places were given already
            self._on_error(error)
            self._cancel(job, Event.FAULT)

    def _clean(self, job: Job, body: Callable[[], bytes]) -> None:
        """The body is ready to be sent: the legs may start, in their turn."""
        if job.lost is not None:
            return
        if job.places.closed:
            self._cancel(job, Event.POLICY_CHANGED)
            return
        try:
            job.body = body()
        except Exception as error:
            self._on_error(error)
            self._cancel(job, Event.FAULT)
            return
        job.places.waiting.append(job)
        self._start_waiting(job.places)

    def _start_waiting(self, places: Places) -> None:
        waiting = places.waiting
        while waiting and places.may_start():
            job = waiting[0]
            kind = job.waiting[0]
            if self._busy() or not _has_room(job, kind):
                self._cancel(job, Event.SHED)
                continue
            job.waiting = job.waiting[1:]
            if not job.waiting:
                waiting.popleft()
            places.started()
            self._start(job, kind)

    # legs

    def _start(self, job: Job, kind: str) -> None:
        """Send a leg; it has its place already, and whatever fails here ends it as one that never ran."""
        leg = None
        try:
            leg = leg_exchange(
                job.exchange,
                job.places.rule,
                job.pool_of(kind),
                kind,
                body=job.body,
                profile=job.profile,
                now=self._clock(),
                over=lambda leg: self._soon(lambda: end_leg(leg, TOO_LONG)),
                on_finish=lambda leg, result, _: self._leg_ended(job, kind, leg, result),
            )
            job.running[kind] = leg
            self._running.add(job)
            self._wheel.add(leg)
            if self._forwarder.launch(leg):
                return
        except Exception as error:
            self._on_error(error)
        if leg is not None:
            end_leg(leg, "busy")
        else:
            self._left(job, kind, never_ran(job.pool_of(kind)))

    def _leg_ended(self, job: Job, kind: str, leg: Exchange, result: Result) -> None:
        self._wheel.discard(leg)
        # A finished leg must not keep its job alive, nor itself.
        leg.on_finish = _nothing
        leg.connection.abort()
        del job.running[kind]
        if not job.running:
            self._running.discard(job)
        self._left(job, kind, leg_of(leg, result, job.pool_of(kind)))
        places = job.places
        if places.waiting:
            self._soon(lambda: self._start_waiting(places))

    # ends

    def _left(self, job: Job, kind: str, gave: Leg) -> None:
        """A leg's place is free again, and what it gave is known."""
        job.places.ended()
        if job.lost is None:
            job.legs[kind] = gave
            self._hold(job, len(gave.answer))
        self._ended(job)

    def _hold(self, job: Job, more: int) -> None:
        job.held += more
        self.held_bytes += more

    def _ended(self, job: Job) -> None:
        """One leg fewer to wait for."""
        job.left -= 1
        if job.left:
            return
        self.held_bytes -= job.held
        lost = job.lost
        if lost is None and not self._buffer.add(job.pair()):
            lost = Event.BUFFER_FULL
        if lost is not None:
            self._buffer.count(job.places.rule.name, job.profile.bucket, lost)

    def _cancel(self, job: Job, why: Event) -> None:
        """Nothing will come of it: its legs end, and it ends with the client's own."""
        if job.lost is not None:
            return
        job.lost = why
        job.body = b""
        job.places.given_up(job)
        pending, job.waiting = len(job.waiting), []
        for leg in list(job.running.values()):
            end_leg(leg, "shed")
        for _ in range(pending):
            self._ended(job)

    def _close(self, places: Places, why: Event) -> None:
        places.closed = True
        for job in {*places.waiting, *(job for job in self._running if job.places is places)}:
            self._cancel(job, why)


def _has_room(job: Job, kind: str) -> bool:
    """Whether the pool has a place to spare: a share of its limit is never taken from clients."""
    view = job.exchange.generation.pools[job.pool_of(kind)]
    limit = view.pool.limits.inflight
    return limit is None or view.room() > max(limit // RESERVED, kind == NOISE)


def _nothing(_leg: Exchange, _result: Result, _status: int) -> None:
    """What a finished leg has left to do."""
