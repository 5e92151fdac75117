"""What became known of a request after its answer: feedback, failed tool calls, repeated calls, immediate re-asks."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from gateway.core.consequence import Subject
from gateway.store.inserting import Inserter
from gateway.store.tables import aftermath, requests


class Consequence(NamedTuple):
    """One thing that happened later to ``request_id``; ``by_request_id`` is the request that told of it."""

    at: float
    request_id: str
    kind: str  # feedback | tool_error | repeated_call | re_ask
    tenant: str
    bucket: str
    pool: str
    label: str = ""
    score: float | None = None
    by_request_id: str = ""


def inserter(engine: Engine) -> Inserter:
    """The insert of ``Consequence`` rows."""
    return Inserter(engine, aftermath, Consequence._fields)


def of_request(engine: Engine, request_id: str) -> list[RowMapping]:
    """Everything known about one request, in order."""
    statement = select(aftermath).where(aftermath.c.request_id == request_id).order_by(aftermath.c.id)
    with engine.connect() as connection:
        return list(connection.execute(statement).mappings())


class Answered(NamedTuple):
    """An answer on record that feedback may speak of. ``said``: label and score of the feedback it had so far."""

    subject: Subject
    said: tuple[tuple[str, float | None], ...] = ()


def answered(engine: Engine, request_ids: Sequence[str]) -> list[Answered]:
    """Those of the requests that are on record and that a pool answered."""
    columns = (requests.c[name] for name in Subject.__struct_fields__)
    wanted = requests.c.request_id.in_(request_ids) & (requests.c.result == "ok") & (requests.c.pool != "")
    spoken = select(aftermath.c.request_id, aftermath.c.label, aftermath.c.score).where(
        aftermath.c.request_id.in_(request_ids), aftermath.c.kind == "feedback"
    )
    with engine.connect() as connection:
        subjects = [Subject(*row) for row in connection.execute(select(*columns).where(wanted))]
        said: dict[str, list[tuple[str, float | None]]] = {}
        for request_id, label, score in connection.execute(spoken.order_by(aftermath.c.id)) if subjects else ():
            said.setdefault(request_id, []).append((label, score))
    return [Answered(subject, tuple(said.get(subject.request_id, ()))) for subject in subjects]
