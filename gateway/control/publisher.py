"""The only writer of the routing table: turns a loaded policy into a generation that every worker serves.

Prepare, then apply. ``Prepare`` goes to every connected worker and may fail; one failure keeps the last good
generation everywhere. When all have answered, the generation becomes the snapshot on disk and is applied, which
cannot fail. A worker that does not answer in time is cut off and not waited for: it dials again and gets the newest.
A worker that joins at any time gets the current generation, and the one being prepared.

Called by ``control.reload`` (one ``publish`` at a time) and, through ``control.hub``, by ``control.link``.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec
import structlog

from gateway.control import frames
from gateway.control.durable import Durable, SlotsExhaustedError
from gateway.control.link import WorkerLink
from gateway.errors import PolicyRejectedError
from gateway.model.messages import Apply, Prepare, Prepared
from gateway.model.table import Table

PREPARE_S = 10.0

_log = structlog.get_logger("control.publisher")


class CompileTable(Protocol):
    """How a policy document becomes a table; ``gateway.policy.compile_table`` with its secrets bound."""

    def __call__(self, document: bytes, generation: int, slots: Mapping[str, int]) -> Table:
        """Raises ``PolicyRejectedError``."""
        ...


class Publication(msgspec.Struct, frozen=True):
    """The generation in force, as control sees it. ``at``: wall-clock seconds when it was applied."""

    table: Table
    prepare: Prepare
    at: float

    @property
    def generation(self) -> int:
        """Its number."""
        return self.table.generation

    @property
    def digest(self) -> str:
        """Content digest of its policy documents."""
        return self.table.digest


class RefusedError(Exception):
    """The policy is valid here, but a worker could not prepare it; ``errors`` by worker index."""

    def __init__(self, generation: int, errors: Mapping[int, str]) -> None:
        self.generation = generation
        self.errors = dict(errors)
        first = min(self.errors)
        super().__init__(
            f"generation {generation} was refused by {len(self.errors)} worker(s); worker {first}: {self.errors[first]}"
        )


class _Staged:
    """A generation that waits for the workers' answers."""

    def __init__(self, prepare: Prepare) -> None:
        self.generation = prepare.generation
        self.frame = frames.encode(prepare)
        self.waiting: set[WorkerLink] = set()
        self.errors: dict[int, str] = {}
        self._settled = asyncio.Event()

    def ask(self, link: WorkerLink) -> None:
        self.waiting.add(link)
        link.send_frame(self.frame)

    def answer(self, link: WorkerLink, error: str) -> None:
        if link in self.waiting and error:
            self.errors[link.index] = error
        self.forget(link)

    def forget(self, link: WorkerLink) -> None:
        self.waiting.discard(link)
        if not self.waiting:
            self._settled.set()

    async def settled(self, within_s: float) -> None:
        if self.waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._settled.wait()


class Publisher:
    """Holds the current publication and moves it. ``on_applied`` callbacks run on the loop after each change."""

    def __init__(
        self,
        durable: Durable,
        compile_table: CompileTable,
        wall: Callable[[], float],
        prepare_s: float = PREPARE_S,
    ) -> None:
        self.current: Publication | None = None
        self.on_applied: list[Callable[[Publication], None]] = []
        self._durable = durable
        self._compile = compile_table
        self._wall = wall
        self._prepare_s = prepare_s
        self._links: set[WorkerLink] = set()
        self._staged: _Staged | None = None
        self._turn = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()

    # -- tables -------------------------------------------------------------------------------------------------

    def restore(self) -> bool:
        """Take up the snapshot of a predecessor. False if there is none or it no longer compiles."""
        snapshot = self._durable.snapshot
        if snapshot is None:
            return False
        try:
            table = self._compile(snapshot.document, snapshot.generation, snapshot.slots)
        except PolicyRejectedError as error:
            _log.error("snapshot_unusable", generation=snapshot.generation, findings=[str(f) for f in error.findings])
            return False
        self._become(Publication(table=table, prepare=snapshot, at=self._wall()))
        _log.info("snapshot_restored", generation=snapshot.generation, digest=table.digest)
        return True

    async def publish(self, document: bytes, digest: str, *, anew: bool = False) -> Publication:
        """Make ``document`` the generation in force on every worker, and return it.

        The digest in force already is returned as it is, unless ``anew``: a secret it refers to may differ. Raises
        ``PolicyRejectedError`` if it does not compile and ``RefusedError`` if a worker cannot prepare it; in both cases
        nothing has changed.
        """
        async with self._turn:
            if self.current is not None and self.current.digest == digest and not anew:
                return self.current
            return await self._publish(document)

    async def _publish(self, document: bytes) -> Publication:
        draft = await asyncio.to_thread(self._compile, document, self._durable.generation + 1, {})
        try:
            generation, slots = self._durable.assign(slot_names(draft))
        except SlotsExhaustedError as error:
            raise RefusedError(self._durable.generation + 1, {-1: str(error)}) from error
        await self._save(self._durable.save_state)
        table = await asyncio.to_thread(self._compile, document, generation, slots)
        prepare = Prepare(generation=generation, document=document, slots=slots)
        await self._prepare_everywhere(prepare)
        publication = Publication(table=table, prepare=prepare, at=self._wall())
        await self._save(partial(self._durable.save_snapshot, prepare))
        apply = frames.encode(Apply(generation=generation))
        for link in self._links:
            link.send_frame(apply)
        self._become(publication)
        return publication

    async def _prepare_everywhere(self, prepare: Prepare) -> None:
        staged = self._staged = _Staged(prepare)
        try:
            for link in list(self._links):
                staged.ask(link)
            await staged.settled(self._prepare_s)
        finally:
            self._staged = None
        for link in list(staged.waiting):
            _log.error(
                "worker_did_not_prepare", worker=link.index, generation=prepare.generation, within_s=self._prepare_s
            )
            self._links.discard(link)
            link.cut()
        if staged.errors:
            raise RefusedError(prepare.generation, staged.errors)

    async def _save(self, write: Callable[[], None]) -> None:
        """A full disk must not stop a policy change; it is told, and the previous state stays on disk."""
        try:
            await asyncio.to_thread(write)
        except OSError as error:
            _log.error("state_not_saved", error=str(error))

    def _become(self, publication: Publication) -> None:
        """The workers have it: a listener that fails is told, and cannot undo it or keep it from the others."""
        self.current = publication
        for callback in self.on_applied:
            try:
                callback(publication)
            except Exception:
                _log.exception("listener_failed", generation=publication.generation)

    # -- workers ------------------------------------------------------------------------------------------------

    def worker_joined(self, link: WorkerLink) -> None:
        """Bring a new or returning worker to the current generation, and have it prepare what is being prepared."""
        self._links.add(link)
        if self.current is not None:
            if link.generation > self._durable.generation:
                self._overtaken(link)
            elif link.generation != self.current.generation:
                link.send(self.current.prepare)
                link.send(Apply(generation=self.current.generation))
        if self._staged is not None:
            self._staged.ask(link)

    def worker_left(self, link: WorkerLink) -> None:
        """Wait for it no longer."""
        self._links.discard(link)
        if self._staged is not None:
            self._staged.forget(link)

    def prepared(self, link: WorkerLink, message: Prepared) -> None:
        """Count an answer to a ``Prepare``."""
        if self._staged is not None and message.generation == self._staged.generation:
            self._staged.answer(link, message.error)
            return
        if self.current is not None and message.generation == self.current.generation:
            link.error = message.error
            if message.error:
                _log.error(
                    "worker_refused_current", worker=link.index, generation=message.generation, error=message.error
                )

    def _overtaken(self, link: WorkerLink) -> None:
        """A worker serves a number this state directory has never given (it was lost): move everything past it."""
        _log.warning("generation_overtaken", worker=link.index, serves=link.generation, known=self._durable.generation)
        self._durable.raise_generation(link.generation)
        task = asyncio.get_running_loop().create_task(self._renumber(), name="renumber")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _renumber(self) -> None:
        async with self._turn:
            if self.current is None:
                return
            try:
                await self._publish(self.current.prepare.document)
            except (PolicyRejectedError, RefusedError) as error:
                _log.error("renumber_failed", error=str(error))


def slot_names(table: Table) -> Sequence[str]:
    """Every name of the table that needs a row on the usage board."""
    names = [f"tenant:{name}" for name in table.tenants]
    if table.anonymous is not None:
        names.append(f"tenant:{table.anonymous.name}")
    for pool in table.pools.values():
        names.extend(f"endpoint:{pool.name}/{index}" for index in range(len(pool.endpoints)))
    return names
