"""The admin API over what is recorded: records, one record with its aftermath, the report, latency, deployments,
samples. Documented in docs/evidence-records.md.

Owns paths, parameters and shapes. Reads only: the database in threads, a report in a process of its own, so that no
query stops control's loop. Pages are newest first with a cursor that later rows do not move. No text of a request is
ever in an answer, except of a sample whose key the caller sends along.
"""

import asyncio
import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import msgspec
import orjson
import structlog
from aiohttp import web
from sqlalchemy.engine import RowMapping

from gateway.control import report_process
from gateway.control.answers import body_answer, cursor_of, error_answer, json_answer
from gateway.control.endpoints import EndpointView
from gateway.control.evidence import Evidence, deployment_record
from gateway.control.latency import BLOCK_S, BLOCKS, as_values
from gateway.control.orphans import end_with_parent
from gateway.control.reads import (
    NoDatabaseError,
    as_text,
    engine_of,
    flag_of,
    guarded,
    page_of,
    read,
)
from gateway.core.deployment import entries, missing, plan_of
from gateway.core.report import Report
from gateway.core.span import read_moment
from gateway.model.proving import Samples
from gateway.model.table import Table
from gateway.store import aftermath, deployments, gathering, samples
from gateway.store.engine import StoreError
from gateway.store.records import Filter, page

EVALUATED_S = 30 * 86_400.0
REPORT_S = 300.0
CHOICE = frozenset({"since", "until", "bucket", "pool", "tenant", "result", "failed"})
PAGE = frozenset({"limit", "cursor"})
LATENCY = frozenset({"since", "bucket", "pool", "sketches"})
REPORT = CHOICE | {"baseline"}
SAMPLES = PAGE | {"bucket", "pool", "tenant"}

_log = structlog.get_logger("control.api_records")


class RecordsApi:
    """Handlers. ``wall`` is the clock of records, ``table`` and ``views`` what is in force and known at a moment."""

    def __init__(
        self,
        evidence: Evidence,
        wall: Callable[[], float],
        table: Callable[[], tuple[Table, Samples] | None],
        views: Callable[[], list[EndpointView]],
    ) -> None:
        self._evidence = evidence
        self._wall = wall
        self._table = table
        self._views = views
        self._one_report = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """Every path with its handler."""
        return [
            web.get("/api/v1/records", guarded(self.records, CHOICE | PAGE)),
            web.get("/api/v1/records/{request_id}", guarded(self.record)),
            web.get("/api/v1/report", guarded(self.report, REPORT)),
            web.get("/api/v1/latency", guarded(self.latency, LATENCY)),
            web.get("/api/v1/deployments", guarded(self.deployments)),
            web.get("/api/v1/samples", guarded(self.samples, SAMPLES)),
            web.get("/api/v1/samples/{request_id}", guarded(self.sample)),
            web.get("/api/v1/schemas/report", guarded(self.report_schema)),
        ]

    async def records(self, request: web.Request) -> web.Response:
        """A page of records, newest first."""
        query = request.query
        wanted = self._filter(query)
        before, most = page_of(query)
        rows = await read(self._evidence.archive, page, wanted, before, most)
        body = {
            "records": [_record(row) for row in rows],
            "next_cursor": cursor_of(rows[-1]["id"]) if len(rows) == most else None,
        }
        return json_answer(body, request)

    async def record(self, request: web.Request) -> web.Response:
        """One record with what became of it, what ran, and whether a sample of it is kept."""
        request_id = request.match_info["request_id"]
        rows = await read(self._evidence.archive, page, Filter(request_id=request_id), None, 1)
        if not rows:
            return error_answer(404, "record_not_found", f"There is no record of request {request_id}.")
        later = await read(self._evidence.archive, aftermath.of_request, request_id)
        kept = await read(self._evidence.archive, samples.of_request, request_id)
        found = _record(rows[0])
        found["aftermath"] = [{key: value for key, value in row.items() if key != "id"} for row in later]
        found["deployment_record"] = await read(self._evidence.archive, deployments.get, found["deployment"])
        found["sample"] = None if kept is None else _sample(kept)
        return json_answer(found, request)

    async def report(self, request: web.Request) -> web.Response:
        """The report as JSON. One at a time: it is a scan of the database."""
        query = request.query
        wanted = self._filter(query)
        baselines = tuple(name for name in query.get("baseline", "").split(",") if name)
        engine = engine_of(self._evidence.archive)
        url = engine.url.render_as_string(hide_password=False)
        try:
            async with asyncio.timeout(REPORT_S), self._one_report:
                made = await _apart(url, wanted, baselines, self._wall())
        except report_process.ReportError as error:
            return error_answer(400, "no_report", f"{error}")
        except BrokenProcessPool:
            return error_answer(503, "report_failed", "The report's process died; it may need more memory.")
        return body_answer(made, request)

    async def report_schema(self, request: web.Request) -> web.Response:
        """JSON schema of the report."""
        return json_answer(msgspec.json.schema(Report), request)

    async def latency(self, request: web.Request) -> web.Response:
        """Sketched latencies per bucket and pool since control started, or of the last ``since`` (at most an hour)."""
        query = request.query
        since = query.get("since")
        within_s = None if since is None else self._wall() - _moment(since, self._wall())
        if within_s is not None and within_s > BLOCKS * BLOCK_S + 1.0:  # a moment may be in whole seconds
            raise ValueError("since may be an hour ago at most; without it all counts since control started")
        cells = [
            (key, cell)
            for key, cell in self._evidence.latency.cells(within_s).items()
            if query.get("bucket", key[0]) == key[0] and query.get("pool", key[1]) == key[1]
        ]
        return json_answer({"latency": as_values(cells, with_sketches=flag_of(query, "sketches"))}, request)

    async def deployments(self, request: web.Request) -> web.Response:
        """Each pool's deployment record: declared, attested, and what is missing in it."""
        current = self._table()
        if current is None:
            return error_answer(503, "no_policy", "no policy has been applied yet")
        evaluated: Mapping[str, Mapping[str, int]] | None = None
        try:
            evaluated = await read(self._evidence.archive, gathering.checked_by_pool, self._wall() - EVALUATED_S)
        except NoDatabaseError:
            _log.info("deployments_without_evaluation")
        views = self._views()
        hashes = self._evidence.archive.running
        body = {
            "deployments": [
                _deployment(*current, name, views, evaluated) | {"hash": hashes.get(name, "")}
                for name in current[0].pools
            ]
        }
        return json_answer(body, request)

    async def samples(self, request: web.Request) -> web.Response:
        """A page of kept samples without their texts, newest first."""
        query = request.query
        before, most = page_of(query)
        wanted = {name: query.get(name, "") for name in ("bucket", "pool", "tenant")}
        rows = await read(
            self._evidence.archive, lambda engine: samples.listing(engine, before=before, most=most, **wanted)
        )
        body = {
            "samples": [_sample(row) for _, row in rows],
            "next_cursor": cursor_of(rows[-1][0]) if len(rows) == most else None,
        }
        return json_answer(body, request)

    async def sample(self, request: web.Request) -> web.Response:
        """One sample; with its key in ``x-quantgate-samples-key`` also its texts."""
        request_id = request.match_info["request_id"]
        row = await read(self._evidence.archive, samples.of_request, request_id)
        if row is None:
            return error_answer(404, "sample_not_found", f"No sample of request {request_id} is kept.")
        found = _sample(row)
        key = request.headers.get(samples.KEY_HEADER)
        if key is not None:
            try:
                opened = await asyncio.to_thread(lambda: samples.Sealer(key).open(row.request_id, row.sealed))
            except StoreError as error:
                return error_answer(403, "wrong_key", str(error))
            found |= {"api": opened.api, "request": as_text(opened.request), "answer": as_text(opened.answer)}
        answer = json_answer(found)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _filter(self, query: Mapping[str, str]) -> Filter:
        now = self._wall()
        return Filter(
            since=_moment(query["since"], now) if "since" in query else None,
            until=_moment(query["until"], now) if "until" in query else None,
            bucket=query.get("bucket", ""),
            pool=query.get("pool", ""),
            tenant=query.get("tenant", ""),
            result=query.get("result", ""),
            failed=flag_of(query, "failed"),
        )


async def _apart(url: str, wanted: Filter, baselines: tuple[str, ...], made_at: float) -> bytes:
    """Make a report in a process that lives as long as it takes."""
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent)
    try:
        return await asyncio.get_running_loop().run_in_executor(
            pool, report_process.make, url, wanted, baselines, made_at
        )
    finally:
        for process in list((pool._processes or {}).values()):  # a scan that nobody waits for cannot be ended otherwise
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def _moment(text: str, now: float) -> float:
    return read_moment(text, now)


def _record(row: RowMapping) -> dict[str, Any]:
    """A row as JSON: lists as lists, what is unknown (-1 in the database) as null."""
    found = {key: None if _unknown(key, value) else value for key, value in row.items() if key != "id"}
    found["attempts"] = [
        dict(zip(("pool", "endpoint", "status", "failure", "started_s", "took_s"), attempt, strict=True))
        for attempt in orjson.loads(row["attempts"])
    ]
    found["constraints"] = orjson.loads(row["constraints"])
    found["findings"] = [{"check": check, "verdict": verdict} for check, verdict in orjson.loads(row["findings"])]
    found["failures"] = [name for name in row["failures"].split(",") if name]
    return found


def _unknown(key: str, value: Any) -> bool:
    return isinstance(value, int | float) and value < 0 and key not in ("id", "at")


def _sample(row: samples.SampleRow) -> dict[str, Any]:
    found = row._asdict()
    found["sealed_bytes"] = len(found.pop("sealed"))
    return found


def _deployment(
    table: Table,
    kept: Samples,
    pool: str,
    views: list[EndpointView],
    evaluated: Mapping[str, Mapping[str, int]] | None,
) -> dict[str, Any]:
    declared = deployment_record(table.pools[pool])
    ours = [view for view in views if view.pool == pool]
    attested = next((msgspec.to_builtins(view.attestation) for view in ours if view.attestation is not None), None)
    plan = plan_of(table, kept, pool, None if evaluated is None else evaluated.get(pool, {}))
    found = entries(declared, attested, plan)
    return {
        "pool": pool,
        "record": declared,
        "endpoints": [
            {
                "endpoint": view.endpoint,
                "verdict": view.verdict,
                "mismatches": msgspec.to_builtins(view.mismatches),
                "attestation": msgspec.to_builtins(view.attestation),
            }
            for view in ours
        ],
        "entries": msgspec.to_builtins(found),
        "missing": [f"{entry.group}: {entry.name}" for entry in missing(found)],
    }
