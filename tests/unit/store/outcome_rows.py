"""Rows of single outcomes, for tests that fill a database."""

from typing import NamedTuple

from sqlalchemy import Engine

from gateway.core.batch import by_column
from gateway.core.quality import Inspection
from gateway.model.outcome import Outcome
from gateway.store.recording import RequestInserter, RequestRow, checked_of, kind_row, rows_of


class Record(NamedTuple):
    """An outcome, what the checks found of it, and what ran in its pool."""

    outcome: Outcome
    inspection: Inspection | None = None
    deployment: str = ""


def row_of(record: Record) -> RequestRow:
    """As the archive makes it."""
    kind = kind_row(record.outcome.kind, record.deployment)
    (row,) = rows_of(by_column([record.outcome]), [kind], checked_of([record.inspection]))
    return row


def put(engine: Engine, *records: Record) -> None:
    """Insert them."""
    RequestInserter(engine).add([row_of(record) for record in records])
