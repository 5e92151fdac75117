"""Rollouts in service: the engine's turns on control's loop, each proposal stored, then obeyed, then told.

Owns the order of effects and the lock that makes commands and turns one after the other. Started by
``app.rollout_parts``.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import structlog
from sqlalchemy import Engine as Database
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.link import WorkerLink
from gateway.control.rollouts import Engine
from gateway.control.rollouts_clock import Clock
from gateway.control.rollouts_keeping import Keeper, Kept
from gateway.control.rollouts_notices import brake_message, messages_of, say, say_left_behind
from gateway.control.rollouts_sharing import Sharing
from gateway.control.rollouts_storing import Storing, key_of
from gateway.control.rollouts_values import Key, Proposal, Surroundings, told_shares
from gateway.control.series import Counter
from gateway.control.webhooks import Webhooks
from gateway.core.evidence import Budget
from gateway.core.rollout import ENGINE, Audit, Event, EventKind, Persist, Standing, State
from gateway.model.messages import Rollouts, ToWorker
from gateway.model.proving import Oversight
from gateway.model.table import Table
from gateway.store.rollouts import Change

TURN_S = 1.0
POLL_S = 2.0
METERS_S = 5.0

_ANSWERS = (EventKind.FAIL, EventKind.INCIDENT, EventKind.BESIDE, EventKind.BRAKE)
_WIDE = (State.SHADOWING, State.STEPPING, State.PROMOTED)

_log = structlog.get_logger("control.rollouts")


class RolloutService:
    """``broadcast`` sends to every worker; ``wall`` is the wall clock in seconds, ``monotonic`` tells when that is set.

    ``clock`` is what evidence goes by: whoever brings some looks at it first.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        database: Callable[[], Database | None],
        broadcast: Callable[[ToWorker], None],
        surroundings: Surroundings,
        webhooks: Webhooks,
        wall: Callable[[], float],
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.engine = Engine(surroundings)
        self.keeper = Keeper(state_dir, database)
        self.webhooks = webhooks
        self.transitions = Counter(
            "quantgate_rollout_transitions_total",
            "Transitions of rollouts by what caused them and where they led.",
            ("rollout", "event", "state"),
        )
        self.trips = Counter(
            "quantgate_rollout_trips_total", "Suspicion meters that tripped, by what it led to.", ("rollout", "outcome")
        )
        self._broadcast = broadcast
        self.clock = Clock(wall, monotonic or wall, self._clock_stepped)
        self._lock = asyncio.Lock()
        self._latched: Rollouts | None = None
        self._storing = Storing(self.keeper)
        self.sharing = Sharing(database, self.keeper.name())
        self._again: dict[Key, Event] = {}
        self._polled_s = self._metered_s = 0.0

    # life

    def standing(self, rollout: str, bucket: str) -> Standing | None:
        """Where a bucket stands, by the rollout's name in the policy in force."""
        identity = self.engine.buckets.identities.get(rollout)
        return self.engine.standings.get((identity, bucket)) if identity is not None else None

    def apply(self, table: Table, oversight: Oversight, records: Mapping[str, str]) -> None:
        """A policy came into force."""
        budget = Budget(oversight.false_rollbacks_per_year, oversight.series)
        before = list(self.engine.buckets.in_force())
        self.engine.apply(table, budget, records, self.clock())
        say_left_behind(one for one in before if one.identity not in self.engine.buckets.plans)
        self.webhooks.configure(oversight.webhooks)
        for plan in table.rollouts:
            # From the start at 0: an increase from nothing to 1 is none to a monitoring system.
            for event, state in (("fail", "rolled_back"), ("rollback", "rolled_back"), ("incident", "holding")):
                self.transitions.row((plan.name, event, state))
        if self.engine.restored:
            self._publish_shares(self._save())

    def take_up(self) -> None:
        """Continue from the state directory. Without its files the database is waited for."""
        standings, state = self.keeper.read()
        if standings is not None:
            self.engine.restore(standings, state, self.clock())
            self._latched = self._save()

    def tell(self, link: WorkerLink) -> None:
        """A worker joined: it gets the shares in force. Before anything is known it keeps what it has."""
        if self._latched is not None:
            link.send(self._latched)

    async def run(self) -> None:
        """Turns until cancelled. A turn that fails is logged, and the next one comes."""
        while True:
            await asyncio.sleep(TURN_S)
            try:
                await self.turn()
            except Exception:
                _log.exception("rollout_turn_failed")

    async def stop(self) -> None:
        """Store the meters as they are, and take leave of the other gateways."""
        async with self._lock:
            await self.sharing.leave(self.engine, self.clock())
            if self.engine.restored:  # or those that are stored would be lost
                await self._save_meters()

    async def turn(self) -> None:
        """One turn: other replicas' changes, evidence, decisions, meters."""
        async with self._lock:
            now_s = self.clock()
            if not self.engine.restored:
                await self._restore_from_database(now_s)
                return
            if self._is_at_work() and now_s - self._polled_s >= POLL_S:
                self._polled_s = now_s
                await self._poll(now_s)
            done = await self._carry_out(self.engine.restage(now_s))
            again = [self.engine.propose(at, event) for at, event in self._again.items()]
            self._again.clear()
            done += await self._carry_out([found for found in again if found is not None])
            # Looked at again after each wait: the clock may have been set meanwhile, and all moved along.
            now_s = self.clock()
            blocks = await self.sharing.exchange(self.engine, self.engine.collect(now_s), now_s)
            now_s = self.clock()
            done += await self._carry_out(self.engine.turn(now_s, blocks))
            if done or (self._is_at_work() and now_s - self._metered_s >= METERS_S):
                self._metered_s = now_s
                await self._save_meters()

    def _is_at_work(self) -> bool:
        """There is a rollout, or was one: something to hear of others, and to keep."""
        return bool(self.engine.buckets.plans or self.engine.standings)

    def _clock_stepped(self, was_s: float, now_s: float) -> None:
        self.sharing.shift(self.engine, was_s, now_s)
        self._polled_s += now_s - was_s
        self._metered_s = 0.0  # what is stored speaks of another time

    async def _save_meters(self) -> None:
        await asyncio.to_thread(self.keeper.save_meters, self.engine.state(self.clock()))

    # commands

    async def command(self, kind: EventKind, rollout: str, bucket: str, actor: str, reason: str) -> dict[str, str]:
        """What a person asks of a bucket, or of all with ``*``: bucket → what came of it. ``KeyError`` if unknown."""
        async with self._lock:
            identity = self.engine.buckets.identities.get(rollout)
            buckets = [at for at in self.engine.standings if at[0] == identity and (bucket == "*" or at[1] == bucket)]
            if identity is None or not buckets:
                raise KeyError(f"{rollout} {bucket}")
            event = Event(kind, self.clock(), reason, actor if actor != ENGINE else f"operator {actor}")
            await self._carry_out(self.engine.restage(event.at_s, buckets))
            answers: dict[str, str] = {}
            proposals: list[Proposal] = []
            for at in sorted(buckets):
                found = self.engine.command(at, event)
                if isinstance(found, str):
                    answers[at[1]] = f"refused: {found}"
                else:
                    proposals.append(found)
            done = await self._carry_out(proposals)
            for proposal in proposals:
                stored = proposal in done
                answers[proposal.key[1]] = (
                    proposal.stepped.standing.state.value if stored else "refused: it could not be stored; try again"
                )
            return answers

    # effects

    async def _carry_out(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Store, obey, tell; returns what was done. Nothing is obeyed before it is on disk."""
        befores = {proposal.key: self.engine.standings[proposal.key] for proposal in proposals}
        done = []
        for proposal in proposals:
            if await self._stored(proposal, befores[proposal.key]):
                self.engine.accept(proposal)
                done.append(proposal)
            elif proposal.event.kind in _ANSWERS:
                # The trip of a slice is answered once: what came of it must not be lost to another gateway's change.
                self._again[proposal.key] = proposal.event
        if done:
            message = await asyncio.to_thread(self._save)
            if told_shares(done):
                self._publish_shares(message)
            for proposal in done:
                self._account(proposal, befores[proposal.key])
            brake = brake_message(done, befores, self.engine.buckets.in_force())
            if brake is not None:
                self.webhooks.tell(brake)
        return done

    async def _stored(self, proposal: Proposal, before: Standing) -> bool:
        standing = proposal.stepped.standing
        tightens = standing.share_bp <= before.share_bp and standing.state not in _WIDE
        kept = await self._storing.store(self._change(proposal), tightens=tightens)
        if kept is Kept.OVERTAKEN:
            self._polled_s = 0.0
        return kept.acts

    def _change(self, proposal: Proposal) -> Change:
        persist, audit = proposal.stepped.effects[:2]
        assert isinstance(persist, Persist) and isinstance(audit, Audit)  # noqa: S101 - the table's property tests say so
        return Change(persist.standing, persist.expected, audit, self.engine.policy, proposal.evidence)

    def _save(self) -> Rollouts:
        return self.keeper.save(self.engine.buckets.shares(), self.engine.standings.values())

    def _publish_shares(self, message: Rollouts) -> None:
        self._latched = message
        self._broadcast(message)

    def _account(self, proposal: Proposal, before: Standing) -> None:
        """Log, counters and notices of one transition."""
        standing, event = proposal.stepped.standing, proposal.event
        self.transitions.add((standing.rollout, event.kind.value, standing.state.value))
        if event.kind in (EventKind.FAIL, EventKind.INCIDENT):
            self.trips.add((standing.rollout, event.kind.value))
        say(standing, before, event)
        for message in messages_of(proposal, before):
            self.webhooks.tell(message)

    # other replicas and the database

    async def _restore_from_database(self, now_s: float) -> None:
        if not self.keeper.available:
            return
        try:
            standings = await asyncio.to_thread(self.keeper.newer, {})
        except SQLAlchemyError as error:
            _log.error("rollouts_not_restored", error=type(error).__name__)
            return
        _, state = await asyncio.to_thread(self.keeper.read)
        self.engine.restore(standings, state, now_s)
        self._publish_shares(await asyncio.to_thread(self._save))

    async def _poll(self, now_s: float) -> None:
        """Take up what other gateways decided; what they came before of ours is asked for again on top of it."""
        news = await self._storing.news(list(self.engine.standings.values()))
        lost = {key_of(change): change.audit for change in news.overtaken}
        for at, audit in lost.items():
            words = f"{audit.reason} (again: another gateway's change came before)"
            self._again[at] = Event(audit.event, now_s, words, audit.actor)
        known = self.engine.standings
        newer = [
            one
            for one in news.newer
            if (at := (one.identity, one.bucket)) in lost or at not in known or one.version > known[at].version
        ]
        if newer:
            self._adopt(newer, now_s)
            self._publish_shares(await asyncio.to_thread(self._save))

    def _adopt(self, standings: Iterable[Standing], now_s: float) -> None:
        for standing in standings:
            _log.info("rollout_adopted", bucket=standing.bucket, state=standing.state.value, version=standing.version)
            self.engine.adopt(standing, now_s)
