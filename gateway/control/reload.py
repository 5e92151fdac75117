"""Hot reload: from a change of the policy files to a publication, or to the last good one with the reason told.

Owns when files are read and what the last attempt came to. A change counts only when two readings some time apart are
equal and nobody has a file open for writing; what is loaded is those very bytes, so a half-written set is never
applied. Loading and compiling run in a thread. Changes that arrive meanwhile end in one more round, so a storm of edits
becomes as many publications as can be made, each of a complete set.

Files are glanced at twice a second, and looked at more often while somebody edits them. Notices of the file system
would tell of a change a moment sooner, at the price of a wake-up for every write beside the policy: a database and a
log there write all the time.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

import msgspec
import structlog

from gateway.control.glance import Glance
from gateway.control.publisher import Publisher, RefusedError
from gateway.control.watch import Reading, read_policy_files
from gateway.errors import PolicyError, PolicyRejectedError
from gateway.policy.document import Snapshot
from gateway.policy.load import Loaded

POLL_S = 0.5
LOOK_S = 10.0  # whatever the glances say: a file system may not tell everything
SETTLE_S = 0.1
# Whoever edits once edits again: after a change files are looked at every SETTLE_S for this many looks.
ATTENTIVE_LOOKS = 50
# A file that stays open for writing without a change is taken as it is after this long.
BUSY_S = 10.0
# A worker's refusal can have a passing cause (a file it could not read), so the same content is tried again.
REFUSED_RETRY_S = 30.0

_log = structlog.get_logger("control.reload")


class ReloadResult(StrEnum):
    """How one attempt to take up the policy files ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"  # the policy has errors
    MISSING = "missing"  # no policy is there or readable
    REFUSED = "refused"  # a worker could not prepare it
    INTERNAL = "internal"


GOOD = frozenset({ReloadResult.APPLIED, ReloadResult.UNCHANGED})


class ReloadReport(msgspec.Struct, frozen=True):
    """The last attempt. ``at``: wall-clock seconds. ``findings`` include warnings."""

    result: ReloadResult
    at: float
    message: str
    findings: tuple[PolicyError, ...] = ()

    @property
    def good(self) -> bool:
        """The files and what is served are the same."""
        return self.result in GOOD


class Reloader:
    """Keeps the publication equal to the files. ``report`` is the last attempt, ``counts`` all of them by result.

    ``extra_files`` gives the files that the current policy refers to (secrets): when one changes, the same policy is
    published anew.
    """

    def __init__(
        self,
        path: Path,
        load: Callable[[Snapshot], Loaded],
        publisher: Publisher,
        wall: Callable[[], float],
        *,
        extra_files: Callable[[], Iterable[Path]] = tuple,
        poll_s: float = POLL_S,
        settle_s: float = SETTLE_S,
    ) -> None:
        self.path = path
        self.report: ReloadReport | None = None
        self.counts: dict[ReloadResult, int] = dict.fromkeys(ReloadResult, 0)
        self._load = load
        self._publisher = publisher
        self._wall = wall
        self._poll_s = poll_s
        self._settle_s = settle_s
        self._nudged = asyncio.Event()
        self._forced = False
        self._extra_files = extra_files
        self._extra: str | None = None
        self._tried: Reading | None = None
        self._retry_in_s: float | None = None
        self._attentive_looks = 0
        self._glance: Glance | None = None

    async def first(self) -> ReloadReport:
        """Load once, now; for the start of control."""
        await self._attempt(forced=True)
        self._attentive_looks = 0  # nobody has edited anything yet
        assert self.report is not None  # noqa: S101 - a forced round always reports
        return self.report

    def reload_now(self) -> None:
        """Try again at once, also if no content has changed (SIGHUP)."""
        self._forced = True
        self._nudged.set()

    async def run(self) -> None:
        """Look when a glance found something, now and then, and when nudged, until cancelled."""
        loop = asyncio.get_running_loop()
        nudge = partial(loop.call_soon_threadsafe, self._nudged.set)
        self._glance = glance = Glance(self.path, nudge, self._wall, self._poll_s)
        glance.start()
        try:
            while True:
                wait_s = self._next_look_s()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._nudged.wait()
                self._nudged.clear()
                forced, self._forced = self._forced or self._retry_due(wait_s), False
                await self._attempt(forced=forced)
        finally:
            glance.stop()

    def _next_look_s(self) -> float:
        if self._attentive_looks > 0:
            self._attentive_looks -= 1
            return min(self._settle_s, self._poll_s)
        return LOOK_S if self._retry_in_s is None else self._poll_s

    def _retry_due(self, waited_s: float) -> bool:
        if self._retry_in_s is None:
            return False
        self._retry_in_s -= waited_s
        return self._retry_in_s <= 0

    async def _attempt(self, *, forced: bool) -> None:
        """A round whose unforeseen fault is a report like any other: the last good generation stays."""
        try:
            await self._round(forced=forced)
        except Exception as error:
            _log.exception("reload_failed")
            self._tell(ReloadResult.INTERNAL, f"{type(error).__name__}: {error}")

    async def _round(self, *, forced: bool) -> None:
        """One look at the files; ends in a report if they have changed since the last attempt, or if forced."""
        found = await self._read()
        if found.same_content(self._tried) and not forced:
            return
        self._attentive_looks = ATTENTIVE_LOOKS
        found = await self._settled(found)
        self._tried, self._retry_in_s = found, None
        if found.source is None:
            self._tell(ReloadResult.MISSING, f"no policy at {self.path}", found.findings)
            return
        await self._take_up(found.source, anew=self._extra not in (None, found.extra))
        # The files that this policy refers to are known only once it is compiled.
        self._extra = (await self._read()).extra
        self._tried = msgspec.structs.replace(found, extra=self._extra)

    async def _take_up(self, source: Snapshot, *, anew: bool) -> None:
        before, loaded = self._publisher.current, None
        try:
            loaded = await asyncio.to_thread(self._load, source)
            publication = await self._publisher.publish(loaded.document, loaded.digest, anew=anew)
        except PolicyRejectedError as error:
            findings = error.findings if loaded is None else loaded.placed(error.findings)
            self._tell(ReloadResult.REJECTED, "the policy has errors", findings)
        except RefusedError as error:
            self._retry_in_s = REFUSED_RETRY_S
            self._tell(ReloadResult.REFUSED, str(error), loaded.warnings if loaded else ())
        else:
            result = ReloadResult.UNCHANGED if publication is before else ReloadResult.APPLIED
            self._tell(result, f"generation {publication.generation}, {publication.digest}", loaded.warnings)

    async def _settled(self, found: Reading) -> Reading:
        """Wait until two readings are equal and no writer has a file open, or has left it unchanged for ``BUSY_S``."""
        waited_s = 0.0
        while True:
            await asyncio.sleep(self._settle_s)
            again = await self._read()
            waited_s = waited_s + self._settle_s if again.same_content(found) else 0.0
            if waited_s and (not again.busy or waited_s >= BUSY_S):
                return again
            found = again

    async def _read(self) -> Reading:
        extra = tuple(self._extra_files())
        if self._glance is not None:
            self._glance.extra = extra
        return await asyncio.to_thread(read_policy_files, self.path, extra)

    def _tell(self, result: ReloadResult, message: str, findings: Sequence[PolicyError] = ()) -> None:
        report = ReloadReport(result=result, at=self._wall(), message=message, findings=tuple(findings))
        self.counts[result] += 1
        self.report = report
        if report.good:
            _log.info("policy_" + result, message=message, warnings=[str(finding) for finding in findings])
        else:
            serving = self._publisher.current.generation if self._publisher.current else None
            _log.error(
                "policy_" + result,
                message=message,
                findings=[str(finding) for finding in findings],
                still_serving_generation=serving,
            )
