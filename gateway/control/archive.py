"""Records on their way to the database: one writer thread, batches, and no way for a slow disk to reach a request.

Owns the database connection of control. ``put`` never waits: a full queue drops and counts. When the database fails,
the batch is tried again with growing pauses while the queue fills; the process goes on without it. A row that no
database takes is dropped alone. No text of a request is in the queue. What is queued is lost with the process: a second
or two of records. Reads for the admin API go through ``engine`` in threads of their own.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.backlog import Backlog, Rows
from gateway.control.scoring import Scored
from gateway.control.series import Counter, Histogram
from gateway.core.batch import Batch, ByKind, by_column
from gateway.store import aftermath, deployments, pairs, samples
from gateway.store.aftermath import Consequence
from gateway.store.engine import open_engine, url_of
from gateway.store.inserting import Inserter
from gateway.store.migrate import upgrade
from gateway.store.pairs import PairRow
from gateway.store.recording import RequestInserter, RequestRows, checked_of, kind_row, rows_of
from gateway.store.retention import SLICE, expire
from gateway.store.samples import SampleRow

CAPACITY = 20_000
BATCH = 2_000  # rows of a table, or some more
LINGER_S = 1.0  # how long a record waits for others to share a transaction with
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
WRITE_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
EXPIRE_EVERY_S = 600.0

Row = Consequence | SampleRow | PairRow
_TABLES: dict[type[Row], str] = {Consequence: "aftermath", SampleRow: "samples", PairRow: "pairs"}
_REQUESTS = "requests"
# Why rows are lost. Each begins at 0: an increase from nothing to 1 is none to a monitoring system.
LOST = ("queue_full", "database_failed", "bad_row", "fault", "stopping")

_log = structlog.get_logger("control.archive")


class Archive:
    """The writer. ``monotonic`` and ``wall`` are clocks in seconds."""

    def __init__(
        self, state_dir: Path, monotonic: Callable[[], float], wall: Callable[[], float], capacity: int = CAPACITY
    ) -> None:
        self.written = Counter("quantgate_records_written_total", "Rows written to the database, by table.", ("table",))
        self.dropped = Counter("quantgate_records_dropped_total", "Rows that were not stored, by why.", ("why",))
        for why in LOST:
            self.dropped.row((why,))
        self.failures = Counter(
            "quantgate_database_failures_total", "Failed attempts at the database, by kind of error.", ("error",), 50
        )
        self.write_s = Histogram(
            "quantgate_database_write_seconds", "Seconds to write one batch of rows of a table.", ("table",), WRITE_S
        )
        self.engine: Engine | None = None
        self.error = ""
        self.hashes: dict[str, str] = {}  # of what the policy declares: which deployment a rollout speaks of
        self.running: dict[str, str] = {}  # of that with what the runtimes attest: what stands in a row
        self._state_dir = state_dir
        self._monotonic = monotonic
        self._wall = wall
        self._backlog = Backlog((_REQUESTS, *_TABLES.values()), capacity)
        self._kind_rows = ByKind(lambda kind: kind_row(kind, self.running.get(kind.pool, "")))
        self._url: str | None = None
        self._deployments: dict[str, dict[str, object]] = {}
        self._retention_s = float("inf")
        self._inserters: dict[str, Inserter | RequestInserter] = {}
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._file: tuple[Path, int] | None = None
        self._opened: str | None = None
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)

    def start(self) -> None:
        """Open the database and write from now on."""
        self._thread.start()

    def configure(
        self,
        url: str | None,
        retention_s: float,
        pools: dict[str, dict[str, object]],
        declared: dict[str, dict[str, object]] | None = None,
    ) -> None:
        """The policy's database, how long records are kept, and what runs in each pool: all of it, and as declared."""
        self._retention_s = retention_s
        self._deployments = pools
        self.hashes = {name: deployments.hash_of(record) for name, record in (declared or pools).items()}
        self.running = {name: deployments.hash_of(record) for name, record in pools.items()}
        self._kind_rows.clear()
        if url != self._url or self.engine is None:
            self._url = url
        self._changed.set()

    def take_batch(self, batch: Batch) -> None:
        """Records of finished requests that nothing was checked of."""
        self._queue(_REQUESTS, RequestRows(batch, list(self._kind_rows.of(batch))))

    def take_scored(self, batch: Sequence[Scored]) -> None:
        """Records of finished requests that came with texts."""
        found = by_column([scored.outcome for scored in batch])
        checked = checked_of([scored.inspection for scored in batch])
        self._queue(_REQUESTS, list(rows_of(found, list(self._kind_rows.of(found)), checked)))

    def put(self, row: Row) -> None:
        """Queue one row of another table, or count it as dropped."""
        self._queue(_TABLES[type(row)], [tuple(row)])

    def _queue(self, table: str, rows: Collection[Any]) -> None:
        lost = self._backlog.add(table, rows)
        if lost:
            self.dropped.add(("queue_full",), lost)

    @property
    def waiting(self) -> int:
        """Rows that wait to be written."""
        return len(self._backlog)

    def stop(self, within_s: float) -> None:
        """Write what is waiting, within a time. Blocks; call it from a thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(within_s)
        left = self.waiting
        if left:
            self.dropped.add(("stopping",), left)

    # the thread

    def _run(self) -> None:
        expire_at = self._monotonic() + EXPIRE_EVERY_S / 10
        while True:
            self._keep_open()
            batch = self._take()
            if batch:
                self._keep_open()  # a policy that came meanwhile may name another database
                self._guard(self._write, batch)
            elif self._stop.is_set():
                break
            if self.engine is not None and self._monotonic() >= expire_at:
                # A slice at a time: whoever deletes millions of rows at once lets the queue run over.
                more = self._expire() >= SLICE
                expire_at = self._monotonic() + (0.0 if more else EXPIRE_EVERY_S)
        if self.engine is not None:
            self.engine.dispose()

    def _keep_open(self) -> None:
        """Open what the policy names, if it is not open, and note what runs after any change."""
        if not self._changed.is_set() and self.engine is not None:
            return
        self._changed.clear()
        if (self.engine is not None and self._opened == self._url) or self._open():
            self._note_deployments()

    def _guard(self, write: Callable[[Rows], None], batch: Rows) -> None:
        """A fault of our own must not end the only thread that writes."""
        try:
            write(batch)
        except Exception as error:
            _log.exception("archive_failed")
            self.failures.add((type(error).__name__,))
            self.dropped.add(("fault",), sum(map(len, batch.values())))

    def _take(self) -> Rows:
        """What came within ``LINGER_S``, or at once if that is a batch already; empty if nothing came."""
        if len(self._backlog) < BATCH:
            self._stop.wait(LINGER_S)
        return self._backlog.take(BATCH)

    def _open(self) -> bool:
        self._close()
        self._opened = self._url
        try:
            url = url_of(self._opened, self._state_dir)
            engine = open_engine(url)
            upgrade(engine)
            self._file = _file_of(Path(url.database)) if url.get_backend_name() == "sqlite" and url.database else None
        except Exception as error:  # a driver, a migration, the file system: the writer outlives them all
            self._failed(error)
            self._stop.wait(1.0)
            return False
        self._inserters = {
            _REQUESTS: RequestInserter(engine),
            "aftermath": aftermath.inserter(engine),
            "samples": samples.inserter(engine),
            "pairs": pairs.inserter(engine),
        }
        self.engine = engine
        self.error = ""
        self._changed.set()  # a fresh database does not know yet what runs
        return True

    def _close(self) -> None:
        if self.engine is not None:
            self.engine.dispose()
        self.engine = None

    def _write(self, left: Rows) -> None:
        """All rows of a batch, each table in one transaction; again after a failure, until told to stop."""
        if self._file is not None and _file_of(self._file[0]) != self._file:
            # Somebody moved or deleted the file: what is written to the open one would be lost without a word.
            self._close()
        for pause_s in (*RETRY_S, None):
            for table, rows in left.items():
                left[table] = self._insert(table, rows) if rows else rows
            if not any(left.values()):
                return
            if pause_s is None or self._stop.wait(pause_s):
                break
        self.dropped.add(("database_failed",), sum(len(rows) for rows in left.values()))
        self._close()  # opened anew for the next batch: it may be another database by then

    def _insert(self, table: str, rows: Collection[Any]) -> Collection[Any]:
        """Insert; gives the rows that are to be tried again."""
        if self.engine is None and not self._open():
            return rows
        began, inserter = self._monotonic(), self._inserters[table]
        try:
            inserter.add(rows)
        except Exception as error:
            if not isinstance(error, inserter.refusals):
                self._failed(error)
                return rows
            return self._insert_parted(table, list(rows), type(error).__name__)
        self.error = ""
        self.written.add((table,), len(rows))
        self.write_s.observe(self.write_s.row((table,)), self._monotonic() - began)
        return []

    def _insert_parted(self, table: str, rows: list[Any], error: str) -> list[Any]:
        """Insert all but what no database takes; gives the rows that are to be tried again."""
        middle = len(rows) // 2
        if middle:
            return [*self._insert(table, rows[:middle]), *self._insert(table, rows[middle:])]
        fitted = self._inserters[table].fitted(rows[0])
        if fitted != rows[0]:
            return [*self._insert(table, [fitted])]
        self.dropped.add(("bad_row",))
        _log.error("row_refused", table=table, error=error)
        return []

    def _note_deployments(self) -> None:
        for pool, record in self._deployments.items():
            with contextlib.suppress(SQLAlchemyError):
                if self.engine is not None:
                    deployments.put(self.engine, pool, record, self._wall())

    def _expire(self) -> int:
        try:
            if self.engine is not None:
                return expire(self.engine, self._wall(), self._retention_s, slices=1)
        except (SQLAlchemyError, OSError) as error:
            self._failed(error)
        return 0

    def _failed(self, error: Exception) -> None:
        """Say it once per kind: the driver's own words, without the statement's values."""
        text = f"{type(error).__name__}: {getattr(error, 'orig', None) or error}".splitlines()[0][:300]
        if text != self.error:
            _log.error("database_failed", error=text)
        self.failures.add((type(error).__name__,))
        self.error = text


def _file_of(path: Path) -> tuple[Path, int] | None:
    """A file by its inode; None if there is none."""
    try:
        return path, path.stat().st_ino
    except OSError:
        return None
