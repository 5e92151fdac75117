"""Each store test runs on SQLite and on a real PostgreSQL."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.store.postgres import Postgres, binaries


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    if binaries() is None:
        assert os.environ.get("CI") != "true", "CI must test against PostgreSQL: install the package postgresql"
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    server = Postgres().start()
    yield server.url
    server.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A database without tables."""
    if request.param == "sqlite":
        engine = open_engine(url_of(None, tmp_path))
    else:
        engine = open_engine(url_of(request.getfixturevalue("postgres"), tmp_path))
        with engine.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    yield engine
    engine.dispose()


@pytest.fixture
def engine(empty: Engine) -> Engine:
    """A database with this version's tables."""
    upgrade(empty)
    return empty
