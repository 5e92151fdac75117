"""The probers of all endpoints of the table in force, and what workers are told of them.

Owns one supervised task per endpoint: a reload starts the new ones, stops those of endpoints that are gone, and leaves
the others as they are, with what they know. Tells workers at once when a state changes, and otherwise every two
seconds, for the load. Called by ``app.control_main``; the probing itself is ``control.prober``'s.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping

import aiohttp
import structlog

from gateway.control.endpoints import EndpointView
from gateway.control.link import WorkerLink
from gateway.control.prober import EndpointSpec, Prober
from gateway.control.series import Counter
from gateway.model.enums import EndpointState
from gateway.model.messages import Endpoints
from gateway.model.table import Endpoint, Pool, Table
from gateway.runtimes.adapter import Adapter
from gateway.runtimes.attestation import Attestation
from gateway.runtimes.compare import Declaration, reference_for

TELL_S = 2.0
# Changes that come together are told together.
GATHER_S = 0.02
RESTART_S = 5.0

_log = structlog.get_logger("control.probes")


class Probes:
    """``views`` is control's knowledge of the endpoints, in the table's order."""

    def __init__(
        self,
        tell_all: Callable[[Endpoints], None],
        adapters: Mapping[str, Adapter],
        monotonic: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self.failures = Counter("quantgate_prober_failures_total", "Probers that broke and were started anew.")
        self._tell_all = tell_all
        self._adapters = adapters
        self._monotonic = monotonic
        self._random = random
        self._probers: dict[EndpointSpec, Prober] = {}
        self._tasks: dict[EndpointSpec, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    def take_table(self, table: Table) -> None:
        """Probe the endpoints of this table from now on, and no others."""
        before = {(spec.pool, spec.url, spec.runtime): prober.view for spec, prober in self._probers.items()}
        probers: dict[EndpointSpec, Prober] = {}
        for pool in table.pools.values():
            for endpoint in pool.endpoints:
                spec = describe(pool, endpoint, self._adapters[pool.runtime])
                known = before.get((spec.pool, spec.url, spec.runtime))
                probers[spec] = self._probers.get(spec) or self._new(spec, known)
        self._probers = probers
        self._changed.set()

    def views(self) -> list[EndpointView]:
        """One view per endpoint."""
        return [prober.view for prober in self._probers.values()]

    def has_waiting(self, endpoint: str) -> bool:
        """Whether requests wait at an endpoint, as far as its runtime tells."""
        loads = (view.load for view in self.views() if view.endpoint == endpoint)
        return any(load is not None and (load.waiting or 0) > 0 for load in loads)

    def serves_adapters(self, pool: str) -> bool:
        """Whether the runtime of any endpoint of a pool lists LoRA adapters."""
        known = (view.attestation for view in self.views() if view.pool == pool)
        return any(attestation is not None and bool(attestation.adapters) for attestation in known)

    def message(self) -> Endpoints:
        """What workers are told.

        Nothing of endpoints that are not known yet: a control that has just come back must not undo what its
        predecessor knew, a quarantine above all.
        """
        now = self._monotonic()
        return Endpoints([view.report(now) for view in self.views() if view.state is not EndpointState.UNKNOWN])

    def tell(self, link: WorkerLink) -> None:
        """Tell one worker, as it joins."""
        link.send(self.message())

    async def run(self) -> None:
        """Probe and tell until cancelled."""
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, limit_per_host=8)) as session:
            try:
                while True:
                    self._align_tasks(session)
                    self._tell_all(self.message())
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(TELL_S):
                            await self._changed.wait()
                    await asyncio.sleep(GATHER_S)
                    self._changed.clear()
            finally:
                self._probers = {}
                self._align_tasks(session)
                await asyncio.gather(*self._ending, return_exceptions=True)

    def _align_tasks(self, session: aiohttp.ClientSession) -> None:
        for spec in self._tasks.keys() - self._probers.keys():
            task = self._tasks.pop(spec)
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        for spec in self._probers.keys() - self._tasks.keys():
            run = self._supervise(self._probers[spec], session)
            self._tasks[spec] = asyncio.get_running_loop().create_task(run, name=f"prober {spec.endpoint}")

    async def _supervise(self, prober: Prober, session: aiohttp.ClientSession) -> None:
        while True:
            try:
                await prober.run(session)
            except Exception:
                self.failures.add(())
                _log.exception("prober_broke", pool=prober.spec.pool, endpoint=prober.spec.endpoint)
            await asyncio.sleep(RESTART_S)

    def _new(self, spec: EndpointSpec, known: EndpointView | None) -> Prober:
        return Prober(
            spec,
            self._adapters[spec.runtime],
            spec.view(known),
            monotonic=self._monotonic,
            random=self._random,
            changed=self._changed.set,
            reference=self._reference,
        )

    def _reference(self, spec: EndpointSpec) -> Attestation | None:
        """An endpoint of the same model whose 16-bit KV cache is known: the yardstick for caches that call themselves
        auto."""
        return reference_for(
            [
                prober.view.attestation
                for other, prober in self._probers.items()
                if other.model == spec.model and other != spec and prober.view.attestation is not None
            ]
        )


def describe(pool: Pool, endpoint: Endpoint, adapter: Adapter) -> EndpointSpec:
    """What to probe at an endpoint, and what its pool claims."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return EndpointSpec(
        pool=pool.name,
        endpoint=endpoint.name,
        url=f"{endpoint.scheme}://{host}:{endpoint.port}{endpoint.base_path.rstrip('/')}",
        runtime=pool.runtime,
        model=pool.model,
        attestation=pool.attestation,
        declaration=Declaration(
            precision=pool.precision,
            names=(pool.upstream_model or pool.model,) if adapter.checks_names else (),
            adapters=tuple(sorted(pool.adapters.values())),
            context_window=pool.context_window,
            gpu=pool.gpu,
        ),
        authorization=pool.authorization.decode("latin-1") if pool.authorization else None,
    )
