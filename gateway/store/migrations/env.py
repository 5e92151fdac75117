"""Alembic's entry: always on a connection that the caller opened, inside its transaction."""

from alembic import context

from gateway.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
