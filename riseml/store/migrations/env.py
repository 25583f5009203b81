"""Alembic's entry: runs on the connection that `store.database` hands over."""

from __future__ import annotations

from alembic import context

from riseml.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
