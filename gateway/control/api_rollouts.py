"""The admin API over rollouts: where they stand, their record, an incident's requests, and commands behind tokens.

Owns paths, roles and shapes; everything else is the service's. Changing needs an operator's token; the person's name
goes on record. Documented in docs/rollouts.md.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson
import structlog
from aiohttp import web

from gateway.control.access import Access, Role
from gateway.control.answers import json_answer
from gateway.control.archive import Archive
from gateway.control.incident import INCIDENTS, Places, bundle_of
from gateway.control.reads import flag_of, guarded, read
from gateway.control.rollouts_record import evidence_of
from gateway.control.rollouts_service import RolloutService
from gateway.control.rollouts_values import Key
from gateway.core.rollout import EventKind, Standing
from gateway.errors import ApiError
from gateway.store import rollouts

ROLES: Mapping[EventKind, Role] = {
    EventKind.HOLD: Role.OPERATOR,
    EventKind.PAUSE: Role.OPERATOR,
    EventKind.RESUME: Role.OPERATOR,
    EventKind.ROLLBACK: Role.OPERATOR,
    EventKind.APPROVE: Role.APPROVER,
    EventKind.PROMOTE: Role.APPROVER,
    EventKind.RESET: Role.APPROVER,
}
HISTORY_MOST = 500
INCIDENT_MOST = 200  # events that are looked through for the last incident
REASON_MOST = 1_000

STATUS = frozenset({"rollout", "bucket", "history"})
HISTORY = frozenset({"bucket", "before", "limit"})
INCIDENT = frozenset({"bucket"})

_log = structlog.get_logger("control.api_rollouts")


class _Command(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a command. ``bucket`` ``*`` = every bucket of the rollout."""

    bucket: str
    reason: str


class RolloutsApi:
    """Handlers. ``wall`` is the clock of evidence, ``places`` where the gateway has what a replay needs."""

    def __init__(
        self,
        service: RolloutService,
        access: Access,
        archive: Archive,
        wall: Callable[[], float],
        places: Callable[[], Places],
    ):
        self._service = service
        self._access = access
        self._archive = archive
        self._wall = wall
        self._places = places

    def routes(self) -> list[web.RouteDef]:
        """For ``build_admin``."""
        return [
            web.get("/api/v1/rollouts", guarded(self.status, STATUS)),
            web.get("/api/v1/rollouts/{rollout}/history", guarded(self.history, HISTORY)),
            web.get("/api/v1/rollouts/{rollout}/incident", guarded(self.incident, INCIDENT)),
            web.post("/api/v1/rollouts/{rollout}/{command}", guarded(self.command)),
        ]

    async def status(self, request: web.Request) -> web.Response:
        """Every bucket with its verdicts; ``?rollout=``, ``?bucket=`` narrow it, ``?history=1`` adds meters' steps."""
        engine, now_s = self._service.engine, self._wall()
        query = request.query
        wanted, bucket, history = query.get("rollout", ""), query.get("bucket", ""), flag_of(query, "history")
        rows = []
        for at, standing in sorted(engine.standings.items()):
            plan = engine.buckets.plans.get(at[0])
            if plan is None or wanted not in ("", plan.name) or bucket not in ("", standing.bucket):
                continue
            rows.append(self._row(at, standing, now_s, history=history))
        budget = engine.judge.budget
        return json_answer(
            {
                "restored": engine.restored,
                "brake_engaged_at": engine.brake.engaged_s,
                "budget": {
                    "false_rollbacks_per_year": budget.false_rollbacks_per_year,
                    "slots": budget.slots,
                    "slots_used": len(engine.judge.keys()),
                    "lumps_granted_this_year": engine.judge.lumps_granted(now_s),
                    "lumps_per_year": budget.lumps_per_year,
                },
                "buckets": rows,
            },
            request,
        )

    def _row(self, at: Key, standing: Standing, now_s: float, *, history: bool) -> dict[str, Any]:
        engine = self._service.engine
        run = engine.runs.get(at)
        evidence = evidence_of(run, now_s) if run is not None else {"series": []}
        if not history:
            for series in evidence["series"]:
                series.pop("history", None)
        plan = engine.buckets.plans.get(at[0])
        return {
            **msgspec.to_builtins(standing),
            "stages": [msgspec.to_builtins(stage) for stage in plan.stages] if plan is not None else [],
            "approvals_needed": plan.approvals if plan is not None else 0,
            "refused": engine.buckets.refused.get(at, ""),
            "not_serving": engine.absence(standing),
            "silent": run.silent(now_s) if run is not None else [],
            "series": evidence["series"],
        }

    async def history(self, request: web.Request) -> web.Response:
        """The append-only record, newest first; ``?before=ID`` asks for the next page."""
        query = request.query
        before = _number(query.get("before"), "before")
        most = _number(query.get("limit", "50"), "limit") or 0
        if not 1 <= most <= HISTORY_MOST:
            raise ApiError(400, "invalid_value", f"limit must be a number from 1 to {HISTORY_MOST}.", param="limit")
        rollout, bucket = request.match_info["rollout"], query.get("bucket", "")
        rows = await read(
            self._archive,
            lambda engine: rollouts.history(engine, rollout=rollout, bucket=bucket, before=before, most=most),
        )
        events = [msgspec.to_builtins(row) | {"evidence": orjson.loads(row.evidence)} for row in rows]
        return json_answer({"events": events, "next": rows[-1].id if len(rows) == most else None}, request)

    async def incident(self, request: web.Request) -> web.Response:
        """A bucket's last rollback with its requests, and which of them can be replayed (their texts were kept)."""
        bucket = request.query.get("bucket", "")
        if not bucket:
            raise ApiError(400, "missing_bucket", "Name the bucket: ?bucket=…", param="bucket")
        rollout = request.match_info["rollout"]
        rows = await read(
            self._archive, lambda engine: rollouts.history(engine, rollout=rollout, bucket=bucket, most=INCIDENT_MOST)
        )
        row = next((row for row in rows if row.event in INCIDENTS), None)
        if row is None:
            raise ApiError(404, "no_incident", f"Nothing of the kind is on record for {bucket}.")
        standing = self._service.engine.standings.get((row.identity, bucket))
        return json_answer(await read(self._archive, bundle_of, row, standing, self._places()), request)

    async def command(self, request: web.Request) -> web.Response:
        """Do what a person asks, if their role allows it. 409 if no bucket could take it."""
        word = request.match_info["command"]
        kind = next((kind for kind in ROLES if kind.value == word), None)
        if kind is None:
            known = ", ".join(sorted(kind.value for kind in ROLES))
            raise ApiError(404, "not_found", f"There is no command {word}: use one of {known}.")
        actor = self._access.require(request.headers.get("Authorization"), ROLES[kind])
        body = _read(await request.read(), request.content_type)
        rollout = request.match_info["rollout"]
        try:
            answers = await self._service.command(kind, rollout, body.bucket, actor, body.reason.strip())
        except KeyError:
            message = f"No bucket {body.bucket} of a rollout {rollout} is known. GET /api/v1/rollouts lists them."
            raise ApiError(404, "unknown_bucket", message) from None
        refused = all(answer.startswith("refused: ") for answer in answers.values())
        _log.info("rollout_command", command=word, rollout=rollout, bucket=body.bucket, actor=actor, refused=refused)
        return json_answer({"actor": actor, "buckets": answers}, status=409 if refused else 200)


def _read(data: bytes, content_type: str) -> _Command:
    if content_type != "application/json":  # what a page of another origin cannot send unasked
        raise ApiError(415, "not_json", "Send Content-Type: application/json.")
    try:
        body = msgspec.json.decode(data, type=_Command)
    except msgspec.MsgspecError as error:
        raise ApiError(400, "invalid_body", f'Send {{"bucket": "…", "reason": "…"}}: {error}') from None
    if not body.reason.strip() or len(body.reason) > REASON_MOST:
        message = f"Give a reason of at most {REASON_MOST} characters: it goes on record."
        raise ApiError(400, "missing_reason", message, param="reason")
    return body


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ApiError(400, "invalid_value", f"{name} must be a whole number.", param=name)
    return int(text)
