"""The report's process: a database in, JSON out, faults in words."""

from pathlib import Path

import msgspec
import pytest

from gateway.control import report_process
from gateway.control.report_process import ReportError, make
from gateway.core.report import Report
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.records import Filter
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import inspection
from tests.unit.store.outcome_rows import Record, put


@pytest.fixture(autouse=True)
def same_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own process keeps its priority."""
    monkeypatch.setattr(report_process, "NICE", 0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with ten requests."""
    where = url_of(None, tmp_path)
    engine = open_engine(where)
    upgrade(engine)
    put(engine, *(Record(outcome(request_id=str(i), at=float(i)), inspection()) for i in range(10)))
    return where.render_as_string(hide_password=False)


def test_a_report_as_json(url: str) -> None:
    """With the span and the baseline that were asked for."""
    made = msgspec.json.decode(make(url, Filter(since=3.0), ("bf16",), 99.0), type=Report)
    assert (made.requests, made.since, made.made_at, made.baselines) == (7, 3.0, 99.0, {"m": "bf16"})


def test_faults_are_said_without_the_database_url(url: str, tmp_path: Path) -> None:
    """An unknown baseline, no database, no tables: in words that may be shown to a caller."""
    with pytest.raises(ReportError, match=r"nope.*bf16"):
        make(url, Filter(), ("nope",), 0.0)
    with pytest.raises(ReportError, match="no database"):
        make(f"sqlite:///{tmp_path}/none.sqlite", Filter(), (), 0.0)
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(ReportError, match="cannot be read"):
        make(f"sqlite:///{tmp_path}/empty.sqlite", Filter(), (), 0.0)
