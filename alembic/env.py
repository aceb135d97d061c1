"""Runs revisions on the connection that ``pgrag upgrade`` opened, in its transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table_schema="pgrag", transactional_ddl=True)
context.run_migrations()
