"""Predictions of models for films without corrections, for the list of films."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "impressions",
        sa.Column("film_id", sa.String(length=16), nullable=False),
        sa.Column("model", sa.String(length=16), nullable=False),
        sa.Column("likeliest", sa.String(length=64), nullable=False),
        sa.Column("prediction", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["film_id"], ["films.id"]),
        sa.ForeignKeyConstraint(["model"], ["models.version"]),
        sa.PrimaryKeyConstraint("film_id", "model"),
    )
    op.create_index("ix_impressions_likeliest", "impressions", ["likeliest"])
