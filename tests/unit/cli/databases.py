"""Databases with records, for tests of commands."""

from pathlib import Path
from typing import Any

from gateway.core.quality import Check
from gateway.model.outcome import Attempt
from gateway.store import aftermath, deployments
from gateway.store.aftermath import Consequence
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import inspection
from tests.unit.store.outcome_rows import Record, put

AT = 1_700_000_000.0


def fill(folder: Path, number: int = 300) -> str:
    """A candidate that breaks JSON in one of four answers, and is twice as fast; the database's URL."""
    url = url_of(None, folder)
    engine = open_engine(url)
    upgrade(engine)
    rows: list[Record] = []
    for index in range(number):
        rows.append(Record(_answer(index, "bf16"), inspection()))
        checks = (Check.JSON,) if index % 4 == 0 else ()
        faster = {"ttft_s": 0.04, "first_to_last_s": 0.2, "total_s": 0.25, "precision": "int4"}
        rows.append(Record(_answer(index, "int4", **faster), inspection(*checks)))
    put(engine, *rows)
    aftermath.inserter(engine).add([tuple(Consequence(AT, "bf16-0", "feedback", "acme", "m/short", "bf16", "", 0.0))])
    deployments.put(engine, "bf16", {"pool": "bf16"}, AT)
    engine.dispose()
    return url.render_as_string(hide_password=False)


def _answer(index: int, pool: str, **fields: Any) -> Any:
    tries = (Attempt(pool, f"{pool}/0", 200, "", 0.0, 0.1),)
    return outcome(request_id=f"{pool}-{index}", at=AT + index, pool=pool, attempts=tries, **fields)
