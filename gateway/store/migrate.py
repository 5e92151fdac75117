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


def require_current(engine: Engine) -> None:
    """``StoreError`` unless the database has this version's schema; changes nothing."""
    with engine.connect() as connection:
        wanted = ScriptDirectory.from_config(config_for(connection)).get_current_head()
        found = MigrationContext.configure(connection).get_current_revision()
    if found is None:
        raise StoreError("The database holds no records of quantgate. Point at the one that the gateway writes.")
    if found != wanted:
        raise StoreError(
            f"The database has schema {found}, this version of quantgate reads {wanted}. "
            "Use the gateway's own version: it brings its database up to date when it starts."
        )


def config_for(connection: Connection) -> Config:
    """Alembic's configuration bound to an open connection."""
    config = Config()
    config.set_main_option("script_location", str(_HERE / "migrations"))
    config.attributes["connection"] = connection
    return config
