"""Jobs."""

from typing import Literal

from pydantic import Field

from medgrape.server.schemas.common import Identifier, Plain, Told, When

State = Literal["waiting", "running", "done", "failed", "cancelled"]


class JobTold(Told):
    """Work that takes longer than a request."""

    id: Identifier
    kind: str = Field(examples=["concept.teach"])
    state: State
    progress: float = Field(ge=0, le=1, examples=[0.5])
    news: str = Field(description="What is being done, or why it failed.", examples=["looking at the examples"])
    result: Plain | None = Field(examples=[{"model": "a3c1f09e5b7d2468"}])
    created_at: When
