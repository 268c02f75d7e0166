"""Run by alembic: the migrations, over the connection that `debate.sql.migrate` hands in."""

from alembic import context

attributes = context.config.attributes
context.configure(connection=attributes["connection"], version_table=attributes["version_table"], render_as_batch=True)
context.run_migrations()
