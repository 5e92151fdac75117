"""Watching one endpoint: health, load and attestation, each at its runtime's own pace.

Owns the timing and the HTTP of probes against one endpoint; what to ask and how to read it is the runtime adapter's,
what the answers mean for routing is ``control.health``'s and ``control.endpoints``'s. Created and cancelled by
``control.probes``.
"""

import asyncio
from collections.abc import Callable, Iterable

import aiohttp
import msgspec
import structlog

from gateway.control.endpoints import EndpointView
from gateway.control.health import HealthTrack
from gateway.model.enums import EndpointState
from gateway.runtimes.adapter import ATTESTING, Adapter, Answer, HealthState, Probe, Purpose
from gateway.runtimes.attestation import Attestation
from gateway.runtimes.compare import Declaration, Verdict, compare, judge

BODY_MOST_BYTES = 8 * 1024 * 1024
# While an endpoint is not known to be well, ask this often.
EAGER_S = 1.0
# A ready endpoint that could not be asked what it runs is asked again after this long, not after a whole interval.
LOOK_AGAIN_S = 5.0
# Intervals are spread by this share to either side, so that many gateways do not probe in step.
JITTER = 0.1

_log = structlog.get_logger("control.prober")


class EndpointSpec(msgspec.Struct, frozen=True):
    """What the policy says of one endpoint, as far as probing is concerned. ``attestation``: enforce | warn | off."""

    pool: str
    endpoint: str
    url: str
    runtime: str
    model: str
    attestation: str
    declaration: Declaration
    authorization: str | None = None

    def view(self, before: EndpointView | None) -> EndpointView:
        """The first view of this endpoint. What is known of the same server from ``before`` still holds; it is only
        compared anew, as the policy may claim something else now."""
        fresh = EndpointView(self.pool, self.endpoint, self.url, self.runtime, enforce=self.attestation == "enforce")
        if before is None or (before.url, before.runtime) != (self.url, self.runtime):
            return fresh
        carried = msgspec.structs.replace(
            fresh,
            health=before.health,
            health_reason=before.health_reason,
            state_since=before.state_since,
            load=before.load,
            attestation=before.attestation,
            attested_at=before.attested_at,
        )
        if before.attestation is None or self.attestation == "off":
            return carried
        mismatches = compare(self.declaration, before.attestation)
        return msgspec.structs.replace(carried, mismatches=mismatches, verdict=judge(before.attestation, mismatches))


class Prober:
    """Keeps ``view`` up to date until cancelled. ``changed`` is called when the state is another."""

    def __init__(
        self,
        spec: EndpointSpec,
        adapter: Adapter,
        view: EndpointView,
        *,
        monotonic: Callable[[], float],
        random: Callable[[], float],
        changed: Callable[[], None],
        reference: Callable[[EndpointSpec], Attestation | None],
    ) -> None:
        self.spec = spec
        self.view = view
        self._adapter = adapter
        self._monotonic = monotonic
        self._random = random
        self._changed = changed
        self._reference = reference
        self._track = HealthTrack(view.health)
        self._unseen = False  # the last attempt to read its precision got no answer

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Probe until cancelled."""
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._watch_health(session), name=f"health {self.spec.endpoint}")
            if self._adapter.probes_for(Purpose.METRICS):
                loops.create_task(self._watch_load(session), name=f"load {self.spec.endpoint}")
            if self.spec.attestation != "off":
                loops.create_task(self._watch_precision(session), name=f"attest {self.spec.endpoint}")

    async def _watch_health(self, session: aiohttp.ClientSession) -> None:
        while True:
            answers = await self._ask(session, self._adapter.probes_for(Purpose.HEALTH))
            health = self._adapter.health(answers)
            was_ready = self._track.state is EndpointState.READY
            state = self._track.step(health.state)
            if state is EndpointState.READY and not was_ready and self.spec.attestation != "off":
                # It may have been started anew with other flags: look before it is offered.
                await self._attest(session)
            self._set_health(state, "" if health.state is HealthState.READY else health.reason)
            await self._pause(self._adapter.health_interval_s if self._track.settled else EAGER_S)

    async def _watch_load(self, session: aiohttp.ClientSession) -> None:
        while True:
            answers = await self._ask(session, self._adapter.probes_for(Purpose.METRICS))
            load = self._adapter.load(answers, self._monotonic())
            if load is not None:
                self.view = msgspec.structs.replace(self.view, load=load)
            await self._pause(self._adapter.load_interval_s)

    async def _watch_precision(self, session: aiohttp.ClientSession) -> None:
        interval_s = self._adapter.attest_interval_s
        due = self._monotonic() + interval_s
        while True:
            await self._pause(min(interval_s, LOOK_AGAIN_S))
            if self._track.state is EndpointState.READY and (self._unseen or self._monotonic() >= due):
                await self._attest(session)
                due = self._monotonic() + interval_s

    async def _attest(self, session: aiohttp.ClientSession) -> None:
        """One reading of the precision. An endpoint that did not answer has proved nothing: what is known stays."""
        answers = await self._ask(session, self._adapter.probes_for(*ATTESTING))
        self._unseen = any(answer.status == 0 for answer in answers.values())
        if self._unseen:
            return
        attestation = self._adapter.attest(answers)
        mismatches = compare(self.spec.declaration, attestation, self._reference(self.spec))
        verdict = judge(attestation, mismatches)
        before = self.view
        self._show(
            msgspec.structs.replace(
                before,
                attestation=attestation,
                attested_at=self._monotonic(),
                mismatches=mismatches,
                verdict=verdict,
            )
        )
        if (verdict, mismatches) != (before.verdict, before.mismatches):
            log = _log.warning if verdict in (Verdict.MISMATCH, Verdict.SUSPECT) else _log.info
            log(
                "attestation",
                pool=self.spec.pool,
                endpoint=self.spec.endpoint,
                verdict=verdict,
                reasons=[mismatch.reason for mismatch in mismatches],
                state=self.view.state,
            )

    def _set_health(self, state: EndpointState, reason: str) -> None:
        before = self.view
        self._show(msgspec.structs.replace(before, health=state, health_reason=reason))
        if self.view.state is before.state:
            return
        log = _log.info if state is EndpointState.READY else _log.warning
        log(
            "endpoint_state",
            pool=self.spec.pool,
            endpoint=self.spec.endpoint,
            before=before.state,
            state=self.view.state,
            reason=reason,
        )

    def _show(self, view: EndpointView) -> None:
        """Take what is known now; a state that is another begins now, and is told."""
        if view.state is self.view.state:
            self.view = view
            return
        self.view = msgspec.structs.replace(view, state_since=self._monotonic())
        self._changed()

    async def _ask(self, session: aiohttp.ClientSession, probes: Iterable[Probe]) -> dict[str, Answer]:
        wanted = list(probes)
        answers = await asyncio.gather(*(self._get(session, probe) for probe in wanted))
        return {probe.path: answer for probe, answer in zip(wanted, answers, strict=True)}

    async def _get(self, session: aiohttp.ClientSession, probe: Probe) -> Answer:
        headers = {"Authorization": self.spec.authorization} if self.spec.authorization else {}
        try:
            async with asyncio.timeout(probe.timeout_s):
                async with session.get(self.spec.url + probe.path, headers=headers, allow_redirects=False) as response:
                    body = await _read_bounded(response)
                    return Answer(response.status, body)
        except TimeoutError:
            return Answer(0, error=f"no answer within {probe.timeout_s:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            cause = getattr(error, "os_error", None) or error
            return Answer(0, error=getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds * (1.0 + JITTER * (2.0 * self._random() - 1.0)))


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    chunks = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > BODY_MOST_BYTES:
            raise ValueError(f"the answer is larger than {BODY_MOST_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
