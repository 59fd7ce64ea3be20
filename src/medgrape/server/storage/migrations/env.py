"""What Alembic runs: always on a connection that ``database.migrate`` opened."""

from alembic import context

from medgrape.server.storage.tables import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
)
context.run_migrations()
