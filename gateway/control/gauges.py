"""State of the gateway as gauges, read at the moment of a scrape.

Owns names and meanings; keeps no numbers, except where a gauge must remember its worst (``LoopLag``). Endpoints, pools
and workers that are gone have no series: what is not there cannot be stale. Called by ``control.admin``.
"""

import platform
from collections.abc import Iterable, Mapping, Sequence

from gateway import __version__
from gateway.control.endpoints import EndpointView
from gateway.control.publisher import Publication
from gateway.control.reload import Reloader
from gateway.control.series import Family, Key, gauge
from gateway.model.enums import EndpointState
from gateway.model.messages import Stats
from gateway.model.table import Table
from gateway.runtimes.compare import Verdict

_ENDPOINT = ("pool", "endpoint")


class LoopLag:
    """Worst delay of each process's event loop over the last one to two spans, so that no scrape interval misses it."""

    def __init__(self, span_s: float = 30.0) -> None:
        self._span_s = span_s
        self._turned_at = 0.0
        self._before: dict[str, float] = {}
        self._current: dict[str, float] = {}

    def saw(self, process: str, lag_s: float, now: float) -> None:
        """Take one measurement."""
        self._turn(now)
        self._current[process] = max(self._current.get(process, 0.0), lag_s)

    def family(self, now: float) -> Family:
        """The worst of each process."""
        self._turn(now)
        names = {*self._before, *self._current}
        worst: dict[Key, float] = {
            (name,): max(self._before.get(name, 0.0), self._current.get(name, 0.0)) for name in names
        }
        return gauge(
            "quantgate_loop_lag_seconds",
            "Worst delay in seconds of a process's event loop in the last minute.",
            ("process",),
            worst,
        )

    def _turn(self, now: float) -> None:
        if now - self._turned_at >= 2 * self._span_s:
            self._before, self._current, self._turned_at = {}, {}, now
        elif now - self._turned_at >= self._span_s:
            self._before, self._current, self._turned_at = self._current, {}, now


def reload_families(reloader: Reloader, publication: Publication | None) -> Iterable[Family]:
    """Which policy is in force, and whether the files agree with it."""
    report = reloader.report
    yield gauge(
        "quantgate_reload_success",
        "1 if the policy files, as last read, are what is served; 0 if an older generation is kept.",
        (),
        {(): float(report is not None and report.good)},
    )
    yield Family(
        "counter",
        "quantgate_reload_total",
        "Attempts to take up changed policy files, by how they ended.",
        ("result",),
        {(result.value,): (float(count),) for result, count in reloader.counts.items()},
    )
    yield gauge(
        "quantgate_reload_timestamp_seconds",
        "Unix time in seconds of the last attempt to take up the policy files.",
        (),
        {(): report.at} if report is not None else {},
    )
    if publication is None:
        return
    yield gauge("quantgate_generation", "Number of the policy generation in force.", (), {(): publication.generation})
    yield gauge(
        "quantgate_generation_timestamp_seconds",
        "Unix time in seconds at which the generation in force was applied.",
        (),
        {(): publication.at},
    )
    yield gauge("quantgate_policy_info", "Digest of the policy in force.", ("digest",), {(publication.digest,): 1.0})


def worker_families(stats: Mapping[int, Stats], expected: int, connected: int) -> Iterable[Family]:
    """Workers, each by its index."""
    yield gauge("quantgate_workers_up", "Workers connected to control.", (), {(): connected})
    yield gauge("quantgate_workers_expected", "Workers this gateway runs.", (), {(): expected})
    for name, text, field in (
        ("quantgate_worker_generation", "Policy generation the worker serves.", "generation"),
        ("quantgate_connections", "Open client connections.", "connections"),
        ("quantgate_streams", "Streamed answers being relayed.", "streams"),
        ("quantgate_queued", "Requests waiting for admission.", "queued"),
        ("quantgate_worker_draining", "1 while the worker finishes its requests before it stops.", "draining"),
    ):
        values: dict[Key, float] = {(str(index),): float(getattr(stat, field)) for index, stat in stats.items()}
        yield gauge(name, text, ("worker",), values)


def pool_families(table: Table, stats: Mapping[int, Stats]) -> Iterable[Family]:
    """Pools of the table in force."""
    inflight: dict[Key, float] = {
        (name,): float(sum(stat.inflight.get(name, 0) for stat in stats.values())) for name in table.pools
    }
    yield gauge("quantgate_inflight", "Requests at the pool now, over all workers.", ("pool",), inflight)
    info: dict[Key, float] = {
        (
            pool.name,
            pool.model,
            pool.runtime,
            pool.precision.weights,
            pool.precision.activations,
            pool.precision.kv_cache,
            pool.precision.method or "none",
        ): 1.0
        for pool in table.pools.values()
    }
    labels = ("pool", "model", "runtime", "weights", "activations", "kv_cache", "method")
    yield gauge("quantgate_pool_info", "Declared precision of the pool.", labels, info)


def endpoint_families(views: Sequence[EndpointView], stats: Mapping[int, Stats], now: float) -> Iterable[Family]:
    """Endpoints: state, what attestation says, and the load their runtimes report."""
    states: dict[Key, float] = {}
    verdicts: dict[Key, float] = {}
    numbers: dict[str, dict[Key, float]] = {"running": {}, "waiting": {}, "kv_usage": {}, "age_s": {}}
    for view in views:
        key = (view.pool, view.endpoint)
        states.update({(*key, state.value): float(view.state is state) for state in EndpointState})
        verdicts.update({(*key, verdict.value): float(view.verdict is verdict) for verdict in Verdict})
        report = view.report(now)
        for field, values in numbers.items():
            if (value := getattr(report, field)) >= 0.0:
                values[key] = value
    yield gauge("quantgate_endpoint_state", "1 for the endpoint's state.", (*_ENDPOINT, "state"), states)
    yield gauge(
        "quantgate_endpoint_attestation",
        "1 for the verdict on the endpoint's declared precision.",
        (*_ENDPOINT, "verdict"),
        verdicts,
    )
    for field, name, text in (
        ("running", "quantgate_endpoint_running", "Requests running on the endpoint, as its runtime reports."),
        ("waiting", "quantgate_endpoint_waiting", "Requests queued at the endpoint, as its runtime reports."),
        ("kv_usage", "quantgate_endpoint_kv_usage", "Share of the KV cache in use, 0 to 1, as its runtime reports."),
        ("age_s", "quantgate_endpoint_load_age_seconds", "Seconds since the endpoint's load was read."),
    ):
        yield gauge(name, text, _ENDPOINT, numbers[field])
    yield from _seen_by_workers(views, stats)


def _seen_by_workers(views: Sequence[EndpointView], stats: Mapping[int, Stats]) -> Iterable[Family]:
    pools = {view.endpoint: view.pool for view in views}
    ejected: dict[Key, float] = {(view.pool, view.endpoint): 0.0 for view in views}
    inflight, idle = dict(ejected), dict(ejected)
    for stat in stats.values():
        for local in stat.endpoints:
            if (pool := pools.get(local.endpoint)) is None:
                continue
            key = (pool, local.endpoint)
            ejected[key] += local.state == EndpointState.EJECTED
            inflight[key] += local.inflight
            idle[key] += local.idle
    yield gauge(
        "quantgate_endpoint_ejected_workers", "Workers that have ejected the endpoint for failures.", _ENDPOINT, ejected
    )
    yield gauge("quantgate_endpoint_inflight", "Requests at the endpoint now, over all workers.", _ENDPOINT, inflight)
    yield gauge("quantgate_endpoint_idle_connections", "Kept-alive connections without a request.", _ENDPOINT, idle)


def build_families() -> Iterable[Family]:
    """Which program this is."""
    key = (__version__, platform.python_version())
    yield gauge("quantgate_build_info", "Version of the gateway.", ("version", "python"), {key: 1.0})
