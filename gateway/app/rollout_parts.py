"""The rollouts' parts of control, wired: evidence in, workers and people told, admin API, metrics.

Part of the composition root; made and started by ``app.control_main``.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog
from aiohttp import web

from gateway.control.access import Access
from gateway.control.api_rollouts import RolloutsApi
from gateway.control.evidence import Evidence
from gateway.control.incident import Places
from gateway.control.link import Link
from gateway.control.metrics import Metrics
from gateway.control.probes import Probes
from gateway.control.publisher import Publisher
from gateway.control.recorder import Recorder
from gateway.control.reload import Reloader
from gateway.control.rollouts_absence import Absences
from gateway.control.rollouts_gauges import rollout_families
from gateway.control.rollouts_room import Room
from gateway.control.rollouts_service import RolloutService
from gateway.control.rollouts_world import Edges, World
from gateway.control.series import Counter, Family
from gateway.control.webhooks import Webhooks
from gateway.core.batch import Batch
from gateway.model.messages import Starts
from gateway.model.outcome import Outcome
from gateway.model.proving import Oversight
from gateway.model.table import Table

EDGES_S = 1.0

_log = structlog.get_logger("app.rollouts")


class RolloutParts:
    """Service, webhooks, access and what they are fed by. ``wall`` and ``monotonic`` are clocks in seconds."""

    def __init__(
        self,
        state_dir: Path,
        *,
        config: Path,
        evidence: Evidence,
        publisher: Publisher,
        metrics: Metrics,
        wall: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.webhooks = Webhooks(wall)
        self.access = Access()
        self._wall = wall
        self._monotonic = monotonic
        self._evidence = evidence
        self._publisher = publisher
        self._metrics = metrics
        self._state_dir = state_dir
        self._places = Places(config.absolute(), state_dir.absolute())
        self._service: RolloutService | None = None
        self._edges: Edges | None = None
        self._absences: Absences | None = None
        self._room: Room | None = None

    @property
    def service(self) -> RolloutService:
        """Once ``connect`` was called."""
        assert self._service is not None  # noqa: S101 - the composition root connects first
        return self._service

    def take_starts(self, message: Starts) -> None:
        """Dispatches that workers announce; the hub needs it before the link exists."""
        try:
            self.service.engine.take_starts(message, self.service.clock())
        except Exception:
            _log.exception("starts_failed")

    def connect(self, link: Link, probes: Probes, recorder: Recorder, reloader: Reloader) -> None:
        """Subscribe to everything that evidence is made of."""
        world = World(self._table, probes.views, lambda: self._metrics.worker_stats)
        self._service = service = RolloutService(
            self._state_dir,
            database=lambda: self._evidence.archive.engine,
            broadcast=link.broadcast,
            surroundings=world,
            webhooks=self.webhooks,
            wall=self._wall,
            monotonic=self._monotonic,
        )
        self._edges = Edges(probes.views, lambda: reloader.report)
        engine, clock = service.engine, service.clock
        self._absences = Absences(engine)
        self._room = room = Room(service.standing)
        recorder.subscribe("rollouts", lambda batch: engine.take_outcomes(_taking_part(batch), clock()))
        recorder.subscribe("rollouts-room", lambda batch: room.take_outcomes(_taking_part(batch)))
        self._evidence.scoring.subscribe(
            "rollouts",
            lambda scored: engine.take_scored(scored, clock()),
            lambda batch: engine.take_unchecked(_taking_part(batch)),
        )
        self._evidence.joining.subscribe(lambda found, bad: engine.take_consequence(found, bad, clock()))
        self._evidence.pairing.subscribe(
            lambda scored: engine.take_pair(
                scored.pair, scored.scores.loss, scored.scores.baseline, scored.scores.candidate
            )
        )
        self._evidence.likelihood.subscribe(lambda scored: engine.take_gap(scored.pair, scored.gap.mean_nats))
        link.on_joined.append(service.tell)

    def apply(self, table: Table, oversight: Oversight) -> None:
        """A policy came into force."""
        self.access.configure(oversight.operators)
        self._places = self._places._replace(own_database=oversight.database is None)
        self.service.apply(table, oversight, self._evidence.archive.hashes)

    def tasks(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[None]]:
        """What runs until control stops."""
        return [
            loop.create_task(self.service.run(), name="rollouts"),
            loop.create_task(self.webhooks.run(), name="webhooks"),
            loop.create_task(self._watch_edges(), name="edges"),
        ]

    def routes(self) -> list[web.RouteDef]:
        """The admin API's part."""
        archive = self._evidence.archive
        return RolloutsApi(self.service, self.access, archive, self._wall, lambda: self._places).routes()

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Everything counted here."""
        shed = (self._room.shed,) if self._room is not None else ()
        return (self.service.transitions, self.service.trips, self.service.engine.faults, self.webhooks.sent, *shed)

    def families(self) -> Iterable[Family]:
        """Gauges of this moment."""
        service = self.service
        return rollout_families(service.engine, service.keeper, self._wall(), service.sharing)

    def _table(self) -> Table | None:
        return self._publisher.current.table if self._publisher.current is not None else None

    async def _watch_edges(self) -> None:
        while True:
            await asyncio.sleep(EDGES_S)
            if self._edges is not None and self._absences is not None:
                now_s = self._wall()
                for message in (*self._edges.news(now_s), *self._absences.news(now_s)):
                    self.webhooks.tell(message)


def _taking_part(batch: Batch) -> list[Outcome]:
    """The outcomes of requests that took part in a rollout."""
    rollouts = [kind.rollout for kind in batch.kind]
    return batch.only(rollouts).outcomes() if any(rollouts) else []
