"""The log of all that was done."""

from pydantic import Field

from medgrape.server.schemas.common import HASH, ID, VERSION, Plain, Told, When


class EventTold(Told):
    """Something that was done."""

    seq: int = Field(examples=[17])
    at: When
    actor: str = Field(examples=["ada"])
    kind: str = Field(examples=["study.corrected"])
    film: str | None = Field(examples=[ID])
    study: str | None = Field(examples=[ID])
    model: str | None = Field(examples=[VERSION])
    body: Plain = Field(description="All else that is known of it.", examples=[{"reason": "seen on the earlier film"}])
    previous: str = Field(description="Hash of the event before.", examples=[HASH])
    hash: str = Field(description="Of this event and the one before.", examples=[HASH])
    seal: str = Field(description="The hash, signed with the room's key.", examples=[HASH])


class EventPage(Told):
    """Events, the newest first."""

    events: tuple[EventTold, ...]
    older: int | None = Field(
        description="Ask again with before = this for older ones; null: there are none.", examples=[17]
    )


class VerdictTold(Told):
    """Whether the log is what was written."""

    whole: bool
    events: int = Field(examples=[17])
    head: str = Field(
        description="The last hash: written down elsewhere, it proves later that nothing was removed.", examples=[HASH]
    )
    faults: tuple[str, ...] = Field(examples=[()])
