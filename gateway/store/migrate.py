"""Bring a database to this version's schema. Runs when control opens its store; safe to run again, and by several."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from gateway.store.engine import StoreError

_HERE = Path(__file__).resolve().parent
_LOCK = 0x5175616E  # PostgreSQL advisory lock: replicas that start together migrate one after the other


def upgrade(engine: Engine) -> None:
    """Create or migrate. ``StoreError`` if the database was written by a newer version."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        config = config_for(connection)
        found = MigrationContext.configure(connection).get_current_revision()
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise StoreError(
                f"The database has schema {found}, which is newer than this version of quantgate. "
                "Upgrade quantgate, or point it at another database."
            )
        command.upgrade(config, "head")


def config_for(connection: Connection) -> Config:
    """Alembic's configuration bound to an open connection."""
    config = Config()
    config.set_main_option("script_location", str(_HERE / "migrations"))
    config.attributes["connection"] = connection
    return config
