"""The log of all that was done."""

from pydantic import Field

from medgrape.server.schemas.common import Plain, Told, When


class EventTold(Told):
    """Something that was done."""

    seq: int = Field(examples=[17])
    at: When
    actor: str = Field(examples=["ada"])
    kind: str = Field(examples=["study.corrected"])
    film: str | None
    study: str | None
    model: str | None
    body: Plain
    previous: str = Field(description="Hash of the event before.")
    hash: str
    seal: str


class EventPage(Told):
    """Events, the newest first."""

    events: tuple[EventTold, ...]
    older: int | None = Field(description="Ask again with before = this for older ones; null: there are none.")


class VerdictTold(Told):
    """Whether the log is what was written."""

    whole: bool
    events: int = Field(examples=[17])
    head: str = Field(description="The last hash: written down elsewhere, it proves later that nothing was removed.")
    faults: tuple[str, ...] = Field(examples=[()])
