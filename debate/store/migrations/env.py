"""Run by alembic: the migrations, over the connection that `debate.sql.migrate` hands in."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, render_as_batch=connection.dialect.name == "sqlite")
context.run_migrations()
