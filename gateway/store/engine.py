"""Open a database by URL. SQLite runs in WAL mode, so that readers never wait for the writer.

``StoreError`` is what a person sees when a database cannot be used; it names the URL without its password.
"""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

BUSY_S = 15.0  # others hold SQLite's lock for moments (a report, a backup), and whoever waits is not served in turn


class StoreError(Exception):
    """The database cannot be used; the text says why and what to do."""


def url_of(text: str | None, state_dir: Path) -> URL:
    """The database of a deployment: the policy's URL, or a SQLite file in the state directory."""
    if not text:
        return URL.create("sqlite", database=str(state_dir / "records.sqlite"))
    try:
        url = make_url(text)
    except ArgumentError as error:
        message = "The database URL cannot be read. Write sqlite:///path or postgresql://user@host/name."
        raise StoreError(message) from error
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(f"{url.get_backend_name()} is not supported. Use SQLite or PostgreSQL.")
    return url


def open_engine(url: URL) -> Engine:
    """An engine for one writer thread and a few readers. Connects lazily; use raises SQLAlchemy's errors."""
    try:
        if url.get_backend_name() == "sqlite":
            engine = create_engine(url, connect_args={"timeout": BUSY_S, "check_same_thread": False})
            event.listen(engine, "connect", _tune_sqlite)
            return engine
        return create_engine(url, pool_pre_ping=True, pool_size=4, connect_args={"connect_timeout": 5})
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise StoreError(
            "The PostgreSQL driver is missing. Install it with: pip install 'quantgate[postgres]'"
        ) from error


def open_reader(url: URL) -> Engine:
    """An engine that creates and changes nothing, for use beside a running gateway. ``StoreError`` without a file."""
    if url.get_backend_name() != "sqlite":
        return open_engine(url)
    path = Path(url.database or "").absolute()
    if not path.is_file():
        raise StoreError(f"There is no database {path}. Name the gateway's own, by its --state-dir for example.")
    read_only = URL.create("sqlite", database=path.as_uri(), query={"mode": "ro", "uri": "true"})
    return create_engine(read_only, connect_args={"timeout": BUSY_S, "check_same_thread": False})


def _tune_sqlite(connection: Any, _record: Any) -> None:
    """WAL for readers beside the writer; NORMAL because losing the last second on a power cut is acceptable here."""
    if isinstance(connection, sqlite3.Connection):
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "temp_store=MEMORY", "wal_autocheckpoint=2000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()
