"""Migrations end in exactly the schema of ``tables``, can be repeated, and refuse what is newer."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from gateway.store.engine import StoreError
from gateway.store.migrate import require_current, upgrade
from gateway.store.tables import metadata


def test_migrations_and_tables_agree(engine: Engine) -> None:
    """A change of the schema without a migration, or the reverse, is found here."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": False})
        assert compare_metadata(context, metadata) == []


def test_upgrade_twice_changes_nothing(engine: Engine) -> None:
    """Every start of control runs it."""
    upgrade(engine)


def test_a_newer_database_is_refused_with_the_mend(engine: Engine) -> None:
    """An older program must not write into a schema it does not know."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer than this version"):
        upgrade(engine)


def test_readers_insist_on_this_versions_schema(engine: Engine) -> None:
    """A report over another schema would fail in the middle, or worse, not fail."""
    require_current(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(StoreError, match="has schema 0001"):
        require_current(engine)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(StoreError, match="holds no records"):
        require_current(engine)
