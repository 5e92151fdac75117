"""Records on their way to the database: one writer thread, batches, and no way for a slow disk to reach a request.

Owns the database connection of control. ``put`` never waits: a full queue drops and counts. When the database fails,
the batch is tried again with growing pauses while the queue fills; the process goes on without it. Reads for the admin
API go through ``engine`` in threads of their own.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.scoring import Scored
from gateway.control.series import Counter
from gateway.store import aftermath, deployments, pairs, samples
from gateway.store.aftermath import Consequence
from gateway.store.engine import StoreError, open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.pairs import PairRow
from gateway.store.records import Inserter, Record, row_of
from gateway.store.records import inserter as request_inserter
from gateway.store.retention import expire
from gateway.store.samples import SampleRow

CAPACITY = 20_000
BATCH = 1_000
LINGER_S = 0.25  # how long a record waits for others to share a transaction with
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
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
        self.engine: Engine | None = None
        self.error = ""
        self.hashes: dict[str, str] = {}
        self._state_dir = state_dir
        self._monotonic = monotonic
        self._wall = wall
        self._rows: queue.Queue[Row] = queue.Queue(capacity)
        self._url: str | None = None
        self._deployments: dict[str, dict[str, object]] = {}
        self._retention_s = float("inf")
        self._inserters: dict[str, Inserter] = {}
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)

    def start(self) -> None:
        """Open the database and write from now on."""
        self._thread.start()

    def configure(self, url: str | None, retention_s: float, pools: dict[str, dict[str, object]]) -> None:
        """The policy's database, how long records are kept, and what runs in each pool."""
        self._retention_s = retention_s
        self._deployments = pools
        self.hashes = {name: deployments.hash_of(record) for name, record in pools.items()}
        if url != self._url or self.engine is None:
            self._url = url
        self._changed.set()

    def take_scored(self, batch: Sequence[Scored]) -> None:
        """Records of finished requests."""
        hashes = self.hashes
        for scored in batch:
            self.put(Record(scored.outcome, scored.inspection, hashes.get(scored.outcome.pool, "")))

    def put(self, row: Row) -> None:
        """Queue one row, or count it as dropped."""
        try:
            self._rows.put_nowait(row)
        except queue.Full:
            self.dropped.add(("queue_full",))

    @property
    def waiting(self) -> int:
        """Rows that wait to be written."""
        return self._rows.qsize()

    def stop(self, within_s: float) -> None:
        """Write what is waiting, within a time. Blocks; call it from a thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(within_s)
        left = self._rows.qsize()
        if left:
            self.dropped.add(("stopping",), left)

    # the thread

    def _run(self) -> None:
        expire_at = self._monotonic() + EXPIRE_EVERY_S / 10
        opened: str | None = "\0"
        while True:
            if self._changed.is_set() or opened == "\0":
                self._changed.clear()
                if self.engine is None or opened != self._url:
                    opened = self._url if self._open() else "\0"
                if self.engine is not None:
                    self._note_deployments()
            batch = self._take()
            if batch:
                self._write(batch)
            elif self._stop.is_set():
                break
            if self.engine is not None and self._monotonic() >= expire_at:
                expire_at = self._monotonic() + EXPIRE_EVERY_S
                self._expire()
        if self.engine is not None:
            self.engine.dispose()

    def _take(self) -> list[Row]:
        """Wait for a row, then take what comes within ``LINGER_S``."""
        try:
            batch = [self._rows.get(timeout=0.5)]
        except queue.Empty:
            return []
        until = self._monotonic() + LINGER_S
        while len(batch) < BATCH:
            left = until - self._monotonic()
            try:
                batch.append(self._rows.get(timeout=left) if left > 0 else self._rows.get_nowait())
            except queue.Empty:
                break
        return batch

    def _open(self) -> bool:
        if self.engine is not None:
            self.engine.dispose()
        self.engine = None
        try:
            engine = open_engine(url_of(self._url, self._state_dir))
            upgrade(engine)
        except (StoreError, SQLAlchemyError, OSError) as error:
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
        return True

    def _write(self, batch: list[Row]) -> None:
        """All rows of a batch, each table in one transaction; again after a failure, until told to stop."""
        left = {
            "requests": [row_of(row) for row in batch if isinstance(row, Record)],
            "aftermath": [tuple(row) for row in batch if isinstance(row, Consequence)],
            "samples": [tuple(row) for row in batch if isinstance(row, SampleRow)],
            "pairs": [tuple(row) for row in batch if isinstance(row, PairRow)],
        }
        for pause_s in (*RETRY_S, None):
            for table, rows in list(left.items()):
                if rows and self._insert(table, rows):
                    self.written.add((table,), len(rows))
                    left.pop(table)
            if not any(left.values()):
                return
            if pause_s is None or self._stop.wait(pause_s):
                break
        self.dropped.add(("database_failed",), sum(len(rows) for rows in left.values()))

    def _insert(self, table: str, rows: list[tuple[object, ...]]) -> bool:
        if self.engine is None and not self._open():
            return False
        try:
            self._inserters[table].add(rows)
        except (SQLAlchemyError, OSError) as error:
            self._failed(error)
            return False
        self.error = ""
        return True

    def _note_deployments(self) -> None:
        for pool, record in self._deployments.items():
            with contextlib.suppress(SQLAlchemyError):
                if self.engine is not None:
                    deployments.put(self.engine, pool, record, self._wall())

    def _expire(self) -> None:
        try:
            if self.engine is not None:
                expire(self.engine, self._wall(), self._retention_s)
        except SQLAlchemyError as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Say it once per kind: the driver's own words, without the statement's values."""
        text = f"{type(error).__name__}: {getattr(error, 'orig', None) or error}".splitlines()[0][:300]
        if text != self.error:
            _log.error("database_failed", error=text)
        self.error = text
