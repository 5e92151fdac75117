"""Records on their way to the database: batched, and whatever becomes of the database, counted and never waited for.

The writer is a real thread; the databases are a real SQLite file and a real PostgreSQL that is stopped and started.
"""

import pickle
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from gateway.control import archive as module
from gateway.control.archive import Archive
from gateway.core.quality import Check
from gateway.model.outcome import Capture
from gateway.store.aftermath import Consequence
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.records import Filter, page
from gateway.store.samples import SampleRow
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import batch, scored
from tests.unit.store.postgres import Postgres, binaries

PATIENCE_S = 30.0
POOLS: dict[str, dict[str, object]] = {"bf16": {"pool": "bf16"}}


def wait(condition: Callable[[], bool]) -> None:
    """Poll for what the thread does."""
    due = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < due, "not in time"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps, with shorter pauses."""
    monkeypatch.setattr(module, "RETRY_S", (0.02, 0.05))
    monkeypatch.setattr(module, "LINGER_S", 0.02)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Archive]]:
    """Archives over ``tmp_path``, stopped at the end."""
    made: list[Archive] = []

    def build(url: str | None = None, retention_s: float = 1e9, **options: Any) -> Archive:
        archive = Archive(tmp_path, time.monotonic, lambda: 1_700_000_100.0, **options)
        archive.configure(url, retention_s, POOLS)
        made.append(archive)
        return archive

    yield build
    for archive in made:
        archive.stop(PATIENCE_S)


def put(archive: Archive, *ids: str, **fields: Any) -> None:
    archive.take_scored([scored(name, **fields) for name in ids])


def stored(archive: Archive) -> set[str]:
    assert archive.engine is not None
    return {row["request_id"] for row in page(archive.engine, Filter(), most=1000)}


def counts(archive: Archive) -> tuple[dict[str, float], dict[str, float]]:
    """Written by table, dropped by reason."""
    return (
        {key[0]: row[0] for key, row in archive.written.rows.items()},
        {key[0]: row[0] for key, row in archive.dropped.rows.items() if row[0]},
    )


def test_rows_of_all_kinds_are_written_with_what_ran(make: Callable[..., Archive]) -> None:
    """Records with their checks and deployment, consequences, sealed samples."""
    archive = make()
    archive.start()
    archive.take_scored([scored("a"), scored("b", Check.SCHEMA)])
    archive.put(Consequence(1.0, "a", "feedback", "t", "x", "bf16", "bad", 0.0))
    archive.put(SampleRow("a", 1.0, 2e9, "t", "x", "bf16", "share", b"sealed"))
    wait(lambda: counts(archive)[0] == {"requests": 2, "aftermath": 1, "samples": 1})
    assert archive.engine is not None
    bad, good = page(archive.engine, Filter())
    assert (good["score"], bad["score"], bad["failures"]) == (1.0, 0.2, ",format_error,")
    assert good["deployment"] == archive.running["bf16"]
    with archive.engine.connect() as connection:
        assert connection.execute(text("select hash from deployments")).scalars().all() == [archive.running["bf16"]]
    assert counts(archive)[1] == {}


def test_no_text_waits_for_the_database(make: Callable[..., Archive]) -> None:
    """A slow disk must not hold megabytes of answers in memory: the queue has rows without texts."""
    archive = make()
    archive.take_scored([scored("a", capture=Capture(b"q" * 100_000, b"a" * 100_000, False))])
    archive.take_batch(batch(outcome(capture=Capture(b"q" * 100_000, b"a" * 100_000, False))))
    assert len(pickle.dumps(archive._backlog.take(10)["requests"])) < 20_000


def test_every_reason_for_a_loss_begins_at_zero(make: Callable[..., Archive]) -> None:
    """An increase from nothing is none: rows that are lost at once would raise no alert."""
    archive = make(capacity=3)
    assert set(archive.dropped.family().samples.values()) == {(0.0,)}
    known = set(archive.dropped.rows)
    put(archive, *"abcde")
    assert set(archive.dropped.rows) == known >= {("queue_full",), ("database_failed",), ("bad_row",)}


def test_a_full_queue_drops_and_counts(make: Callable[..., Archive]) -> None:
    """``put`` never waits; what does not fit is lost, and known to be."""
    archive = make(capacity=3)
    put(archive, *"abcde")
    assert (archive.waiting, counts(archive)[1]) == (3, {"queue_full": 2})
    archive.start()
    wait(lambda: archive.waiting == 0 and counts(archive)[0] == {"requests": 3})


def test_finished_requests_wait_as_they_came_and_are_written_in_order(make: Callable[..., Archive]) -> None:
    """Batches without texts, one that came with texts between them, and of the last one what fits."""
    archive = make(capacity=9)
    plain = [batch(*(outcome(request_id=f"{part}{number}") for number in range(4))) for part in "ab"]
    archive.take_batch(plain[0])
    archive.take_scored([scored("checked")])
    archive.take_batch(plain[1])
    archive.take_batch(batch(outcome(request_id="late")))
    assert (archive.waiting, counts(archive)[1]) == (9, {"queue_full": 1})
    archive.start()
    wait(lambda: counts(archive)[0] == {"requests": 9})
    assert archive.engine is not None
    found = [(row["request_id"], row["score"]) for row in page(archive.engine, Filter())]
    assert sorted(found) == [*((f"{part}{n}", None) for part in "ab" for n in range(4)), ("checked", 1.0)]


def test_a_batch_is_cut_where_the_queue_ends(make: Callable[..., Archive]) -> None:
    """The first of it are kept."""
    archive = make(capacity=3)
    archive.take_batch(batch(*(outcome(request_id=name) for name in "abcde")))
    assert (archive.waiting, counts(archive)[1]) == (3, {"queue_full": 2})
    archive.start()
    wait(lambda: counts(archive)[0] == {"requests": 3})
    assert stored(archive) == {"a", "b", "c"}


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_an_absurd_number_in_a_batch_costs_its_own_row(make: Callable[..., Archive], value: int) -> None:
    """It fits into no array and no database; what came with it is written."""
    archive = make()
    archive.take_batch(batch(outcome(request_id="a"), outcome(prompt_tokens=value), outcome(request_id="c")))
    archive.start()
    wait(lambda: counts(archive) == ({"requests": 2}, {"bad_row": 1}))
    assert stored(archive) == {"a", "c"}


def test_stopping_writes_what_waits(make: Callable[..., Archive], tmp_path: Path) -> None:
    """The last outcomes of a stopping gateway are on disk when it ends."""
    archive = make()
    put(archive, *(str(index) for index in range(2500)))
    archive.start()
    archive.stop(PATIENCE_S)
    engine = open_engine(url_of(None, tmp_path))
    with engine.connect() as connection:
        assert connection.execute(text("select count(*) from requests")).scalar_one() == 2500
    assert counts(archive) == ({"requests": 2500}, {})


def test_what_cannot_be_written_at_the_end_is_counted(make: Callable[..., Archive]) -> None:
    """An archive that was never started, or has no database, says what it lost."""
    archive = make()
    put(archive, "a", "b")
    archive.stop(0.0)
    assert counts(archive)[1] == {"stopping": 2}


def test_a_file_that_is_gone_is_made_anew(make: Callable[..., Archive], tmp_path: Path) -> None:
    """Records written into a deleted file would be lost without a word; the new one knows what runs."""
    archive = make()
    archive.start()
    put(archive, "before")
    wait(lambda: counts(archive)[0] == {"requests": 1})
    for file in tmp_path.glob("records.sqlite*"):
        file.unlink()
    put(archive, "after")
    wait(lambda: counts(archive)[0] == {"requests": 2})
    fresh = open_engine(url_of(None, tmp_path))
    with fresh.connect() as connection:
        assert connection.execute(text("select request_id from requests")).scalars().all() == ["after"]
    wait(lambda: archive.engine is not None and len(_hashes(archive)) == 1)


def _hashes(archive: Archive) -> list[str]:
    assert archive.engine is not None
    with archive.engine.connect() as connection:
        return list(connection.execute(text("select hash from deployments")).scalars())


def test_a_read_only_database_costs_records_and_nothing_else(make: Callable[..., Archive], tmp_path: Path) -> None:
    """Rows are tried again, then counted as dropped; when a writable database is configured they are written."""
    upgrade(open_engine(url_of(None, tmp_path)))
    archive = make(f"sqlite:///file:{tmp_path}/records.sqlite?mode=ro&uri=true")
    archive.start()
    put(archive, "lost")
    wait(lambda: "readonly" in archive.error)  # while it is tried again; opening anew clears it
    wait(lambda: counts(archive)[1] == {"database_failed": 1})
    assert archive.failures.rows[("OperationalError",)][0] >= 3
    archive.configure(None, 1e9, POOLS)
    put(archive, "kept")
    wait(lambda: counts(archive)[0] == {"requests": 1})
    assert (stored(archive), archive.error) == ({"kept"}, "")


def test_a_full_disk_costs_records_until_there_is_room(make: Callable[..., Archive]) -> None:
    """SQLite says that it is full; rows are dropped and counted; with room again they are written."""
    archive = make()
    archive.start()
    put(archive, "first")
    wait(lambda: counts(archive)[0] == {"requests": 1})
    assert archive.engine is not None
    pages = [50]

    @event.listens_for(archive.engine, "begin")
    def bound(connection: Any) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages[0]}")

    put(archive, *(f"lost-{index}" for index in range(800)))
    wait(lambda: "full" in archive.error)
    wait(lambda: counts(archive)[1].get("database_failed", 0) == 800)
    put(archive, "after")
    wait(lambda: counts(archive)[0] == {"requests": 2})
    assert {"first", "after"} <= stored(archive)
    assert archive.error == ""


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_a_row_that_no_database_takes_is_dropped_alone(make: Callable[..., Archive], value: int) -> None:
    """A runtime that reports absurd numbers costs its own row, not its neighbours', and not the thread."""
    archive = make()
    rows = [scored(f"good-{index}") for index in range(50)]
    rows.insert(20, scored("bad", completion_tokens=value))
    archive.take_scored(rows)
    archive.start()
    wait(lambda: counts(archive) == ({"requests": 50}, {"bad_row": 1}))
    put(archive, "next")
    wait(lambda: counts(archive)[0] == {"requests": 51})
    assert "bad" not in stored(archive)


def test_a_fault_of_our_own_does_not_end_the_writer(make: Callable[..., Archive]) -> None:
    """It is the only thread that writes: whatever a batch does to it, the next one is written."""
    archive = make()
    archive.start()
    wait(lambda: archive.engine is not None)
    real, archive._inserters = archive._inserters, {}
    put(archive, "broken")
    wait(lambda: counts(archive)[1] == {"fault": 1})
    archive._inserters = real
    put(archive, "fine")
    wait(lambda: counts(archive)[0] == {"requests": 1})


def test_old_rows_are_deleted_a_slice_at_a_time(make: Callable[..., Archive], monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention goes on between batches until nothing old is left, and the writer is never away for long."""
    monkeypatch.setattr(module, "EXPIRE_EVERY_S", 0.0)
    slices: list[int] = []
    real = module.expire

    def counted(*arguments: Any, **options: Any) -> int:
        slices.append(real(*arguments, **options))
        return slices[-1]

    monkeypatch.setattr(module, "expire", counted)
    archive = make(retention_s=50.0)
    put(archive, *(f"old-{index}" for index in range(4500)), at=1_700_000_000.0)
    put(archive, "new", at=1_700_000_090.0)
    archive.start()
    wait(lambda: counts(archive)[0] == {"requests": 4501} and sum(slices) == 4500)
    assert stored(archive) == {"new"}
    assert max(slices) <= module.SLICE


@pytest.mark.postgres
@pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed")
def test_a_database_server_that_dies_and_comes_back(make: Callable[..., Archive]) -> None:
    """What could not be written meanwhile is dropped and counted; afterwards rows are written again by themselves."""
    server = Postgres().start()
    data = str(server._folder / "data")
    try:
        archive = make(server.url)
        archive.start()
        put(archive, "before")
        wait(lambda: counts(archive)[0] == {"requests": 1})
        put(archive, "cut", model="m" * 500, tenant="a\0b")  # this database takes it only when it is cut
        put(archive, "cut too", trace_id="t" * 500, conversation="a\0b")
        wait(lambda: counts(archive) == ({"requests": 3}, {}))
        server._run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        put(archive, "lost")
        wait(lambda: counts(archive)[1] == {"database_failed": 1})
        assert archive.error
        server._run("pg_ctl", "-D", data, "-o", _options(server), "-l", str(server._folder / "log"), "-w", "start")
        put(archive, "after")
        wait(lambda: counts(archive)[0] == {"requests": 4})
        assert stored(archive) == {"before", "cut", "cut too", "after"}
        archive.stop(PATIENCE_S)
    finally:
        server.stop()


def _options(server: Postgres) -> str:
    return f"-p {server._port} -h 127.0.0.1 -k {server._folder} -c fsync=off -c full_page_writes=off"


def test_an_unusable_database_is_said_and_tried_again(make: Callable[..., Archive], tmp_path: Path) -> None:
    """A folder that is missing at first: the gateway runs, and records begin once it is there."""
    target = tmp_path / "later" / "records.sqlite"
    archive = make(f"sqlite:///{target}")
    archive.start()
    wait(lambda: "unable to open" in archive.error)
    target.parent.mkdir()
    put(archive, "a")
    wait(lambda: counts(archive)[0].get("requests", 0) == 1)
    assert archive.error == ""
    shutil.rmtree(target.parent)


def test_the_outcome_of_a_request_is_not_changed(make: Callable[..., Archive]) -> None:
    """Others hold the same outcome; dropping its texts makes a new one."""
    archive = make()
    kept = outcome(capture=Capture(b"q", b"a", False))
    archive.take_scored([scored("a")._replace(outcome=kept)])
    assert kept.capture is not None
