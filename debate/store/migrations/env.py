"""Run by alembic: the migrations, over the connection that `debate.sql.migrate` hands in."""

from alembic import context

attributes = context.config.attributes
connection = attributes["connection"]
context.configure(connection=connection, version_table=attributes["version_table"], render_as_batch=True)
context.run_migrations()
