"""Errors where no exchange was begun: a request that could not be read, a path or method that nothing serves, feedback
that is refused, no policy yet.

Each has an id in its answer and leaves an outcome, as every other error does: a base URL without ``/v1`` must show in
the access log and the metrics. What a client may make up (path, method, fields) is no part of the record. Called by
``pipeline``.
"""

from collections.abc import Callable, Mapping

import msgspec

from gateway.dataplane.answers import error_fields, error_for
from gateway.dataplane.front import cors_of
from gateway.dataplane.outcomes import Ended, OutcomeBuffer
from gateway.errors import ApiError
from gateway.model.enums import Api, Result, Structured, ToolUse
from gateway.model.outcome import Kind
from gateway.model.table import Table
from gateway.wire.http import Request
from gateway.wire.server import ServerConnection

RESULTS = {
    401: Result.UNAUTHORIZED,
    403: Result.UNAUTHORIZED,
    404: Result.NOT_FOUND,
    429: Result.RATE_LIMITED,
    500: Result.INTERNAL,
    503: Result.NO_POOL,
}


class Unserved:
    """One per worker. ``next_id`` gives the next request's id; ``wall`` and ``clock`` are in seconds."""

    def __init__(
        self,
        worker: int,
        next_id: Callable[[], str],
        outcomes: OutcomeBuffer,
        wall: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._worker = worker
        self._next_id = next_id
        self._outcomes = outcomes
        self._wall = wall
        self._clock = clock

    def refuse(
        self,
        connection: ServerConnection,
        error: ApiError,
        table: Table | None,
        asked: Request | Mapping[bytes, bytes],
    ) -> None:
        """Answer with ``error``, and leave its record.

        ``asked`` is the request, or the fields of one that could not be read: then what follows cannot be, either.
        """
        request = asked if isinstance(asked, Request) else None
        fields = asked.fields if isinstance(asked, Request) else asked
        request_id = self._next_id()
        cors = cors_of(table.settings, fields) if table is not None else b""
        lines = error_fields(error) + cors + b"x-quantgate-request-id: %b\r\n" % request_id.encode()
        body = error_for(request.target, error.body()) if request is not None else error.body()
        connection.answer(error.status, lines, body, close=request is None or error.close)
        ended = _ended(
            msgspec.msgpack.encode(_kind(table.generation if table is not None else 0, self._worker, error)),
            request_id,
            self._wall(),
            total_s=self._clock() - request.received_at if request is not None else 0.0,
            bytes_in=len(request.body) if request is not None else 0,
            bytes_out=connection.bytes_out,
        )
        self._outcomes.add(ended)


def _kind(generation: int, worker: int, error: ApiError) -> Kind:
    result = RESULTS.get(error.status, Result.CLIENT_ERROR)
    return Kind(
        generation=generation,
        worker=worker,
        api=Api.OTHER.value,
        tenant="",
        tier="",
        model="",
        adapter="",
        bucket="",
        length="",
        task="",
        privilege="",
        tool_use=ToolUse.NONE.value,
        structured=Structured.NONE.value,
        stream=False,
        rule="",
        arm="",
        rollout="",
        pool="",
        endpoint="",
        precision="",
        status=error.status,
        result=result.value,
        failure="",
        error_code=error.code,
        constraints=(),
        finish_reason="",
        seed=False,
    )


def _ended(kind: bytes, request_id: str, at: float, *, total_s: float, bytes_in: int, bytes_out: int) -> Ended:
    return Ended(
        kind,
        request_id,
        at,
        started_s=0.0,
        took_s=0.0,
        attempts=(),
        queue_s=0.0,
        overhead_s=-1.0,
        ttft_s=-1.0,
        first_to_last_s=-1.0,
        longest_gap_s=-1.0,
        total_s=total_s,
        prompt_tokens_estimated=-1,
        prompt_tokens=-1,
        cached_tokens=-1,
        completion_tokens=-1,
        events=0,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        temperature=-1.0,
        conversation="",
        capture=None,
        trace_id="",
    )
