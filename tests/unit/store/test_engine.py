"""Database URLs: a file by default, PostgreSQL by URL, clear words for everything else."""

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from gateway.store.engine import StoreError, open_engine, open_reader, url_of
from gateway.store.migrate import require_current, upgrade


def test_the_default_is_a_file_in_the_state_directory(tmp_path: Path) -> None:
    """Without a URL records go to SQLite beside the other state."""
    url = url_of(None, tmp_path)
    assert url.get_backend_name() == "sqlite"
    assert url.database == str(tmp_path / "records.sqlite")


@pytest.mark.parametrize("text", ["postgresql://u@h/d", "postgres://u@h/d", "postgresql+psycopg://u@h/d"])
def test_all_spellings_of_postgresql_use_one_driver(text: str) -> None:
    """The driver is ours to choose."""
    assert url_of(text, Path()).drivername == "postgresql+psycopg"


@pytest.mark.parametrize("text", ["nonsense", "mysql://h/d", "://"])
def test_other_urls_are_refused_with_the_mend(text: str) -> None:
    """The words say what is supported, and never repeat a password."""
    with pytest.raises(StoreError, match=r"SQLite|sqlite"):
        url_of(text, Path())


def test_sqlite_runs_in_wal(tmp_path: Path) -> None:
    """Readers do not wait for the writer."""
    with open_engine(url_of(None, tmp_path)).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_a_reader_creates_and_changes_nothing(tmp_path: Path) -> None:
    """A wrong path is an error and no new file; an existing database cannot be written through a reader."""
    missing = url_of(None, tmp_path)
    with pytest.raises(StoreError, match="no database"):
        open_reader(missing)
    assert list(tmp_path.iterdir()) == []
    writer = open_engine(missing)
    upgrade(writer)
    writer.dispose()
    reader = open_reader(missing)
    require_current(reader)
    with pytest.raises(OperationalError, match="readonly"), reader.begin() as connection:
        connection.execute(text("DELETE FROM request_facts"))


def test_a_reader_sees_what_a_writer_committed(tmp_path: Path) -> None:
    """While the gateway writes, as a report does."""
    writer = open_engine(url_of(None, tmp_path))
    upgrade(writer)
    reader = open_reader(url_of(None, tmp_path))
    with writer.begin() as connection:
        connection.execute(text("INSERT INTO deployments (hash, first_seen_at, record) VALUES ('h', 1, '{}')"))
    with reader.connect() as connection:
        assert connection.execute(text("SELECT hash FROM deployments")).scalar_one() == "h"
