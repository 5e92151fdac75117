"""A rollout service over a state directory and a database, with simulated traffic and a clock of its own."""

from pathlib import Path

from sqlalchemy import Engine as Database

from gateway.control.rollouts_service import RolloutService
from gateway.control.webhooks import Message, Webhooks
from gateway.core.rollout import State
from gateway.model.messages import Rollouts
from gateway.model.proving import Oversight, Samples
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.control.rollout_rig import START_S, EngineRig, rollout_policy

BUCKET = "m/short/chat"
OVERSIGHT = Oversight(None, 1e9, Samples(), (), (), 1.0, 1024)


class Served:
    """A service over a state directory, with simulated traffic; ``messages`` is what workers were sent."""

    def __init__(self, directory: Path, *, approvals: int = 0) -> None:
        self.directory = directory
        self.now_s = START_S
        self.database: Database | None = open_engine(url_of(None, directory))
        upgrade(self.database)
        extra = f"promote: {{approvals: {approvals}}}"
        self.rig = EngineRig(rollout_policy(extra=extra))
        self.messages: list[Rollouts] = []
        self.told: list[Message] = []
        self.service = self.start()

    def start(self) -> RolloutService:
        """A fresh control over the same directory."""
        webhooks = Webhooks(lambda: self.now_s)
        webhooks.tell = self.told.append  # type: ignore[method-assign]
        service = RolloutService(
            self.directory,
            database=lambda: self.database,
            broadcast=self.messages.append,  # type: ignore[arg-type]
            surroundings=self.rig.world,
            webhooks=webhooks,
            wall=lambda: self.now_s,
        )
        service.apply(self.rig.table, OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
        service.take_up()
        self.service = service
        self.rig.engine = service.engine
        return service

    async def seconds(self, count: int, **bad: float) -> None:
        """Traffic through the service's own engine and turns."""
        for _ in range(count):
            self.rig.now_s = self.now_s
            self.rig.turn = list  # type: ignore[method-assign]
            self.rig.second(**bad)  # type: ignore[arg-type]
            self.now_s += 1.0
            await self.service.turn()

    async def until(self, state: State, most: int = 400, **bad: float) -> None:
        """Seconds until the bucket is in that state."""
        for _ in range(most):
            if self.rig.at(state):
                return
            await self.seconds(1, **bad)
        raise AssertionError(f"never {state}: {self.rig.state()}")

    def share(self) -> int | None:
        """What workers were told last of the bucket."""
        return self.messages[-1].shares.get(self.rig.table.rollouts[0].identity, {}).get(BUCKET)
