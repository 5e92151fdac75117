"""What the rollout engine sees of the world: which pools are ready, what the baseline can take, what else is wrong.

Owns the reading of probes and workers' gauges for that purpose, and the edges (a reload that failed, an endpoint that
was quarantined) that people want to hear of. Called by the service's turns and by ``app.rollout_parts``.
"""

from collections.abc import Callable, Iterator, Mapping

from gateway.control.endpoints import EndpointView
from gateway.control.reload import ReloadReport
from gateway.control.webhooks import Message
from gateway.core.rollout import Headroom, measure_headroom
from gateway.model.enums import EndpointState
from gateway.model.messages import Stats
from gateway.model.proving import Rollout
from gateway.model.table import Table

_OFFERED = (EndpointState.READY, EndpointState.UNKNOWN)


class World:
    """The engine's ``Surroundings``."""

    def __init__(
        self,
        table: Callable[[], Table | None],
        views: Callable[[], list[EndpointView]],
        stats: Callable[[], Mapping[int, Stats]],
    ) -> None:
        self._table = table
        self._views = views
        self._stats = stats

    def ready(self, pool: str) -> bool:
        """Some endpoint of the pool is probed and serves."""
        return any(view.pool == pool and view.state is EndpointState.READY for view in self._views())

    def absence(self, pool: str) -> str:
        """Every endpoint of the pool and what keeps requests from it; empty if one is offered them by some worker."""
        views = [view for view in self._views() if view.pool == pool]
        ejected = self._ejected()
        if any(view.state in _OFFERED and view.endpoint not in ejected for view in views):
            return ""
        return ", ".join(_words(view, ejected=view.endpoint in ejected) for view in views)

    def _ejected(self) -> set[str]:
        """Endpoints that no worker offers requests, because they failed with all of them."""
        by_worker = [
            {local.endpoint for local in stat.endpoints if local.state == EndpointState.EJECTED}
            for stat in self._stats().values()
        ]
        return set.intersection(*by_worker) if by_worker else set()

    def headroom(self, plan: Rollout, bucket_share: float) -> Headroom | None:
        """From the workers' requests in flight and the baseline's limit; None before anything is known."""
        table, stats = self._table(), self._stats()
        if table is None or not stats or plan.baseline not in table.pools:
            return None
        inflight = {
            name: float(sum(stat.inflight.get(name, 0) for stat in stats.values()))
            for name in (plan.candidate, plan.baseline)
        }
        return measure_headroom(
            plan.baseline,
            candidate_inflight=inflight[plan.candidate],
            bucket_share=bucket_share,
            used=inflight[plan.baseline],
            limit=table.pools[plan.baseline].limits.inflight,
        )


def _words(view: EndpointView, *, ejected: bool) -> str:
    if view.state in _OFFERED and ejected:
        return f"{view.endpoint} is ejected, for its answers fail"
    return f"{view.endpoint} is {view.state.value}" + (f" ({view.reason})" if view.reason else "")


class Edges:
    """Tells once when something goes wrong, and once when it is over."""

    def __init__(self, views: Callable[[], list[EndpointView]], report: Callable[[], ReloadReport | None]) -> None:
        self._views = views
        self._report = report
        self._quarantined: set[str] = set()
        self._failed_at: float | None = None

    def news(self, now_s: float) -> Iterator[Message]:
        """What changed since it was last asked."""
        yield from self._quarantines(now_s)
        report = self._report()
        if report is None:
            return
        if not report.good and self._failed_at is None:
            self._failed_at = report.at
            yield Message("reload_failed", now_s, f"The policy was not taken up: {report.message}")
        elif report.good and self._failed_at is not None:
            self._failed_at = None
            yield Message("reload_failed", now_s, "The policy files are in force again.", resolved=True)

    def _quarantines(self, now_s: float) -> Iterator[Message]:
        views = {view.endpoint: view for view in self._views()}
        now = {name for name, view in views.items() if view.state is EndpointState.QUARANTINED}
        for name in sorted(now - self._quarantined):
            labels = {"endpoint": name, "pool": views[name].pool}
            yield Message("quarantine", now_s, f"{name} is not what its policy declares: {views[name].reason}", labels)
        for name in sorted(self._quarantined - now):
            labels = {"endpoint": name, "pool": views[name].pool if name in views else ""}
            yield Message("quarantine", now_s, f"{name} is out of quarantine.", labels, resolved=True)
        self._quarantined = now
