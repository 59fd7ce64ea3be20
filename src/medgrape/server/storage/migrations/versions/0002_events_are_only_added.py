"""Triggers that refuse to change or remove events.

The owner of the database can drop them; the hash chain then shows the changes. They prevent mistakes.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

_REFUSAL = "events are only ever added"


def upgrade() -> None:
    """Refuse updates and deletions of events."""
    if op.get_bind().dialect.name == "sqlite":
        for deed in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_no_{deed.lower()} BEFORE {deed} ON events "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION refuse_change_of_events() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_events()"
    )
