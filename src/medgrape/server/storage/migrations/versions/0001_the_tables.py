"""Tables of version 0.1.0."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "chain",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(length=27), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("film", sa.String(length=16), nullable=True),
        sa.Column("study", sa.String(length=16), nullable=True),
        sa.Column("model", sa.String(length=16), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("seal", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("ix_events_actor", "events", ["actor"])
    op.create_index("ix_events_film", "events", ["film"])
    op.create_index("ix_events_kind", "events", ["kind"])
    op.create_index("ix_events_study", "events", ["study"])
    op.create_table(
        "models",
        sa.Column("version", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("made_here", sa.Boolean(), nullable=False),
        sa.Column("parent", sa.String(length=16), nullable=True),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("added_at", sa.String(length=27), nullable=False),
        sa.Column("added_by", sa.String(length=64), nullable=False),
        sa.Column("removed_at", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("version"),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("password", sa.String(length=256), nullable=True),
        sa.Column("subject", sa.String(length=512), nullable=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.String(length=27), nullable=True),
        sa.Column("added_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("subject"),
    )
    op.create_table(
        "films",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("content", sa.String(length=64), nullable=False),
        sa.Column("suffix", sa.String(length=8), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("view", sa.String(length=16), nullable=True),
        sa.Column("sex", sa.String(length=1), nullable=False),
        sa.Column("age", sa.Integer(), nullable=True),
        sa.Column("arrived_at", sa.String(length=27), nullable=False),
        sa.Column("arrived_by", sa.Integer(), nullable=False),
        sa.Column("deleted_at", sa.String(length=27), nullable=True),
        sa.ForeignKeyConstraint(["arrived_by"], ["users.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("films_by_arrival", "films", ["arrived_at", "id"])
    present = sa.text("deleted_at IS NULL")
    op.create_index(
        "one_film_for_each_content", "films", ["content"], unique=True, sqlite_where=present, postgresql_where=present
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("news", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.String(length=27), nullable=False),
        sa.Column("beat_at", sa.String(length=27), nullable=False),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_jobs_owner_id", "jobs", ["owner_id"])
    op.create_table(
        "sessions",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.String(length=27), nullable=False),
        sa.Column("expires_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"]),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=27), nullable=False),
        sa.Column("expires_at", sa.String(length=27), nullable=True),
        sa.Column("revoked_at", sa.String(length=27), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_tokens_user_id", "tokens", ["user_id"])
    op.create_table(
        "studies",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("film_id", sa.String(length=16), nullable=False),
        sa.Column("model", sa.String(length=16), nullable=False),
        sa.Column("reader_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("prediction", sa.JSON(), nullable=False),
        sa.Column("opened_at", sa.String(length=27), nullable=False),
        sa.Column("changed_at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(["film_id"], ["films.id"]),
        sa.ForeignKeyConstraint(["model"], ["models.version"]),
        sa.ForeignKeyConstraint(["reader_id"], ["users.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("film_id", "model", "reader_id", name="one_study_for_each_reader"),
    )
    op.create_index("ix_studies_film_id", "studies", ["film_id"])
    op.create_index("ix_studies_reader_id", "studies", ["reader_id"])
    op.execute("INSERT INTO chain (id, seq, hash) VALUES (1, 0, '')")
