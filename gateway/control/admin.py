"""The admin port: health for orchestrators, metrics for Prometheus, the state of the gateway as JSON for people and
tools.

Owns paths and shapes; reads the parts it is given and changes nothing. Errors have the API's shape. Started by
``app.control_main`` on an address that is not meant for clients.
"""

import asyncio
import gzip
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from aiohttp import web

from gateway.control import gauges
from gateway.control.access import Access, reading_guard
from gateway.control.answers import error_answer, json_answer
from gateway.control.endpoints import EndpointView
from gateway.control.exposition import CONTENT_TYPE, render
from gateway.control.gauges import LoopLag
from gateway.control.link import Link, WorkerLink
from gateway.control.metrics import Metrics
from gateway.control.publisher import Publisher
from gateway.control.reads import guarded
from gateway.control.reload import Reloader, ReloadReport
from gateway.control.series import Counter, Family
from gateway.errors import PolicyError
from gateway.model.messages import Stats
from gateway.policy.compile import parse_document

_log = structlog.get_logger("control.admin")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Parts(msgspec.Struct, frozen=True):
    """What the admin port shows. ``endpoints`` and ``monotonic`` are asked at each request."""

    publisher: Publisher
    reloader: Reloader
    link: Link
    metrics: Metrics
    loop_lag: LoopLag
    counters: tuple[Counter, ...]
    families: Callable[[], Iterable[Family]]
    endpoints: Callable[[], list[EndpointView]]
    monotonic: Callable[[], float]
    workers_expected: int


def build_admin(parts: Parts, routes: Iterable[web.RouteDef] = (), access: Access | None = None) -> web.Application:
    """The aiohttp application, with the paths of other parts of control. ``access`` says who may read under /api/."""
    admin = Admin(parts)
    application = web.Application(middlewares=[_openai_errors, *([reading_guard(access)] if access else [])])
    application.router.add_get("/healthz", admin.healthz)
    application.router.add_get("/readyz", admin.readyz)
    application.router.add_get("/metrics", admin.metrics)
    application.router.add_get("/api/v1/policy", guarded(admin.policy))
    application.router.add_get("/api/v1/endpoints", guarded(admin.endpoints))
    application.router.add_get("/api/v1/workers", guarded(admin.workers))
    application.router.add_routes(routes)
    return application


class Admin:
    """Handlers over the parts of control."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def healthz(self, _: web.Request) -> web.Response:
        """Control is alive and its loop turns."""
        return json_answer({"status": "ok"})

    async def readyz(self, request: web.Request) -> web.Response:
        """200 while some worker takes requests by a policy; the detail says what a person should look at."""
        parts = self._parts
        current = parts.publisher.current
        serving = [
            link
            for link in parts.link.workers.values()
            if link.generation > 0 and not (link.stats is not None and link.stats.draining)
        ]
        ready = current is not None and bool(serving)
        report = parts.reloader.report
        views = parts.endpoints()
        detail = {
            "status": "ok" if ready else "unavailable",
            "generation": current.generation if current else None,
            "digest": current.digest if current else None,
            "applied_at": _time(current.at) if current else None,
            "reload": _report(report),
            "workers": {
                "expected": parts.workers_expected,
                "connected": len(parts.link.workers),
                "on_current_generation": sum(
                    current is not None and link.generation == current.generation for link in serving
                ),
                "refused": {str(link.index): link.error for link in parts.link.workers.values() if link.error},
            },
            "endpoints": {
                view.endpoint: {"pool": view.pool, "state": view.state, "reason": view.reason} for view in views
            },
        }
        return json_answer(detail, request, status=200 if ready else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        """Prometheus text. Copied here, encoded and packed in a thread: a large scrape must not stop the loop."""
        parts = self._parts
        now = parts.monotonic()
        current = parts.publisher.current
        stats = dict(parts.metrics.worker_stats)
        families = list(
            itertools.chain(
                gauges.build_families(),
                gauges.reload_families(parts.reloader, current),
                gauges.worker_families(stats, parts.workers_expected, len(parts.link.workers)),
                gauges.pool_families(current.table, stats) if current else (),
                gauges.endpoint_families(parts.endpoints(), stats, now),
                (parts.loop_lag.family(now),),
                (counter.family() for counter in parts.counters),
                parts.families(),
                parts.metrics.families(),
            )
        )
        headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return web.Response(body=await asyncio.to_thread(_packed, families), headers=headers)
        return web.Response(body=await asyncio.to_thread(render, families), headers=headers)

    async def policy(self, request: web.Request) -> web.Response:
        """The policy in force, as the workers compiled it and as a file takes it, and the last reading of the files."""
        current = self._parts.publisher.current
        if current is None:
            return error_answer(503, "no_policy", "no policy has been applied yet")
        report = self._parts.reloader.report
        written = await asyncio.to_thread(parse_document, current.prepare.document)
        return json_answer(
            {
                "generation": current.generation,
                "digest": current.digest,
                "applied_at": _time(current.at),
                "reload": _report(report),
                "document": written.in_words(),
            },
            request,
        )

    async def endpoints(self, request: web.Request) -> web.Response:
        """Every endpoint of the policy in force: state, load, attestation with its reasons."""
        now = self._parts.monotonic()
        workers = self._parts.metrics.worker_stats.values()
        rows = []
        for view in self._parts.endpoints():
            local = {
                str(stat.worker): {"state": item.state, "inflight": item.inflight, "idle": item.idle}
                for stat in workers
                for item in stat.endpoints
                if item.endpoint == view.endpoint
            }
            rows.append(_endpoint(view, now) | {"workers": local})
        return json_answer({"endpoints": rows}, request)

    async def workers(self, request: web.Request) -> web.Response:
        """Every connected worker and its last gauges."""
        rows = [_worker(link) for _, link in sorted(self._parts.link.workers.items())]
        return json_answer({"expected": self._parts.workers_expected, "workers": rows}, request)


def _packed(families: Iterable[Family]) -> bytes:
    return gzip.compress(render(families), compresslevel=1)


def _report(report: ReloadReport | None) -> Mapping[str, Any] | None:
    if report is None:
        return None
    return {
        "result": report.result,
        "success": report.good,
        "at": _time(report.at),
        "message": report.message,
        "findings": [_finding(finding) for finding in report.findings],
    }


def _finding(finding: PolicyError) -> Mapping[str, Any]:
    return msgspec.structs.asdict(finding)


def _endpoint(view: EndpointView, now: float) -> dict[str, Any]:
    load = view.load
    return {
        "pool": view.pool,
        "endpoint": view.endpoint,
        "url": view.url,
        "runtime": view.runtime,
        "state": view.state,
        "reason": view.reason,
        "in_state_s": round(now - view.state_since, 3),
        "load": None if load is None else msgspec.to_builtins(load) | {"age_s": round(now - load.at, 3)},
        "verdict": view.verdict,
        "enforced": view.enforce,
        "mismatches": msgspec.to_builtins(view.mismatches),
        "attestation": msgspec.to_builtins(view.attestation),
        "attested_s_ago": None if view.attested_at is None else round(now - view.attested_at, 3),
    }


def _worker(link: WorkerLink) -> Mapping[str, Any]:
    return {
        "worker": link.index,
        "pid": link.pid,
        "generation": link.generation,
        "error": link.error,
        "stats": None if link.stats is None else _gauges(link.stats),
    }


def _gauges(stats: Stats) -> Mapping[str, Any]:
    """By name: on the wire to control they go by place."""
    endpoints = [msgspec.structs.asdict(endpoint) for endpoint in stats.endpoints]
    return msgspec.structs.asdict(stats) | {"endpoints": endpoints}


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


@web.middleware
async def _openai_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return error_answer(404, "not_found", f"no such path: {request.path}")
    except web.HTTPMethodNotAllowed as error:
        response = error_answer(405, "method_not_allowed", f"{request.method} is not allowed on {request.path}")
        response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
        return response
    except web.HTTPException as error:
        return error_answer(error.status, "invalid_request", error.reason or "invalid request")
    except asyncio.CancelledError:
        raise
    except Exception:
        _log.exception("admin_request_failed", path=request.path)
        return error_answer(500, "internal", "the admin API failed on this request; control's log has the cause")
