"""What runs in the report process: a database URL in, the report's JSON out. Imported there and called by name.

A report over millions of rows keeps a core busy for tens of seconds. In a process of its own that neither stops
control's loop nor holds its interpreter lock, and its memory is gone when it ends.
"""

import os

import msgspec
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from gateway.core.report import Tally, UnknownBaselineError, build
from gateway.store.engine import StoreError, open_reader
from gateway.store.gathering import gather
from gateway.store.records import Filter

NICE = 10


class ReportError(Exception):
    """The report cannot be made; the message is for the caller."""


def make(url: str, wanted: Filter, baselines: tuple[str, ...], made_at: float) -> bytes:
    """The report of matching records as JSON. Raises ``ReportError``."""
    os.nice(NICE)
    tally = Tally()
    try:
        engine = open_reader(make_url(url))
        gather(engine, wanted, tally)
        engine.dispose()
        report = build(tally, made_at, baselines=baselines, since=wanted.since, until=wanted.until)
    except (StoreError, UnknownBaselineError) as error:
        raise ReportError(str(error)) from None
    except SQLAlchemyError as error:
        raise ReportError(f"the database cannot be read ({type(error).__name__})") from None
    return msgspec.json.encode(report)
