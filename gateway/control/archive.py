"""Records on their way to the database: one writer thread, batches, and no way for a slow disk to reach a request.

Owns the database connection of control. ``put`` never waits: a full queue drops and counts. When the database fails,
the batch is tried again with growing pauses while the queue fills; the process goes on without it. A row that no
database takes is dropped alone. No text of a request is in the queue. Reads for the admin API go through ``engine`` in
threads of their own.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError

from gateway.control.scoring import Scored
from gateway.control.series import Counter, Histogram
from gateway.core.batch import Batch
from gateway.store import aftermath, deployments, pairs, samples
from gateway.store.aftermath import Consequence
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.pairs import PairRow
from gateway.store.records import Inserter, Record, row_of
from gateway.store.records import inserter as request_inserter
from gateway.store.retention import SLICE, expire
from gateway.store.samples import SampleRow

CAPACITY = 20_000
BATCH = 1_000
LINGER_S = 0.25  # how long a record waits for others to share a transaction with
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
WRITE_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
EXPIRE_EVERY_S = 600.0

Row = Record | Consequence | SampleRow | PairRow

_log = structlog.get_logger("control.archive")


class Archive:
    """The writer. ``monotonic`` and ``wall`` are clocks in seconds."""

    def __init__(
        self, state_dir: Path, monotonic: Callable[[], float], wall: Callable[[], float], capacity: int = CAPACITY
    ) -> None:
        self.written = Counter("quantgate_records_written_total", "Rows written to the database, by table.", ("table",))
        self.dropped = Counter("quantgate_records_dropped_total", "Rows that were not stored, by why.", ("why",))
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
        self._rows: deque[Row] = deque()  # a deque needs no lock, and no thread is woken for every row
        self._capacity = capacity
        self._url: str | None = None
        self._deployments: dict[str, dict[str, object]] = {}
        self._retention_s = float("inf")
        self._inserters: dict[str, Inserter] = {}
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
        if url != self._url or self.engine is None:
            self._url = url
        self._changed.set()

    def take_scored(self, batch: Sequence[Scored]) -> None:
        """Records of finished requests that came with texts."""
        hashes = self.running
        for scored in batch:
            outcome = scored.outcome
            if outcome.capture is not None:
                outcome = msgspec.structs.replace(outcome, capture=None)
            self.put(Record(outcome, scored.inspection, hashes.get(outcome.pool, "")))

    def take_batch(self, batch: Batch) -> None:
        """Records of finished requests that nothing was checked of."""
        hashes = self.running
        for outcome, kind in zip(batch.outcomes, batch.kinds, strict=True):
            self.put(Record(outcome, None, hashes.get(kind.pool, "")))

    def put(self, row: Row) -> None:
        """Queue one row, or count it as dropped."""
        if len(self._rows) >= self._capacity:
            self.dropped.add(("queue_full",))
        else:
            self._rows.append(row)

    @property
    def waiting(self) -> int:
        """Rows that wait to be written."""
        return len(self._rows)

    def stop(self, within_s: float) -> None:
        """Write what is waiting, within a time. Blocks; call it from a thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(within_s)
        left = len(self._rows)
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

    def _guard(self, write: Callable[[list[Row]], None], batch: list[Row]) -> None:
        """A fault of our own must not end the only thread that writes."""
        try:
            write(batch)
        except Exception as error:
            _log.exception("archive_failed")
            self.failures.add((type(error).__name__,))
            self.dropped.add(("fault",), len(batch))

    def _take(self) -> list[Row]:
        """What came within ``LINGER_S``, or at once if that is a batch already."""
        rows = self._rows
        if len(rows) < BATCH:
            self._stop.wait(LINGER_S)
        return [rows.popleft() for _ in range(min(BATCH, len(rows)))]

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
            "requests": request_inserter(engine),
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

    def _write(self, batch: list[Row]) -> None:
        """All rows of a batch, each table in one transaction; again after a failure, until told to stop."""
        if self._file is not None and _file_of(self._file[0]) != self._file:
            # Somebody moved or deleted the file: what is written to the open one would be lost without a word.
            self._close()
        left = {
            "requests": [row_of(row) for row in batch if isinstance(row, Record)],
            "aftermath": [tuple(row) for row in batch if isinstance(row, Consequence)],
            "samples": [tuple(row) for row in batch if isinstance(row, SampleRow)],
            "pairs": [tuple(row) for row in batch if isinstance(row, PairRow)],
        }
        for pause_s in (*RETRY_S, None):
            for table, rows in left.items():
                left[table] = self._insert(table, rows) if rows else rows
            if not any(left.values()):
                return
            if pause_s is None or self._stop.wait(pause_s):
                break
        self.dropped.add(("database_failed",), sum(len(rows) for rows in left.values()))
        self._close()  # opened anew for the next batch: it may be another database by then

    def _insert(self, table: str, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        """Insert; gives the rows that are to be tried again."""
        if self.engine is None and not self._open():
            return rows
        began = self._monotonic()
        try:
            self._inserters[table].add(rows)
        except Exception as error:
            if not _is_the_rows_fault(error):
                self._failed(error)
                return rows
            fitted = self._inserters[table].fitted(rows[0])
            if len(rows) == 1 and fitted != tuple(rows[0]):
                return self._insert(table, [fitted])
            if len(rows) == 1:
                self.dropped.add(("bad_row",))
                _log.error("row_refused", table=table, error=type(error).__name__)
                return []
            middle = len(rows) // 2
            return self._insert(table, rows[:middle]) + self._insert(table, rows[middle:])
        self.error = ""
        self.written.add((table,), len(rows))
        self.write_s.observe(self.write_s.row((table,)), self._monotonic() - began)
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


def _is_the_rows_fault(error: Exception) -> bool:
    """A value that does not fit, and not a database that is gone, full or locked: trying again would never help."""
    if isinstance(error, DBAPIError):
        return isinstance(error, DataError | IntegrityError)
    return isinstance(error, StatementError | OverflowError | ValueError | TypeError)


def _file_of(path: Path) -> tuple[Path, int] | None:
    """A file by its inode; None if there is none."""
    try:
        return path, path.stat().st_ino
    except OSError:
        return None
