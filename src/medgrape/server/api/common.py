"""Base classes of requests and responses, and the field, path and query types that several resources use."""

from datetime import datetime
from math import inf
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from medgrape.geometry import Box
from medgrape.server.services import media_response
from medgrape.server.storage.tables import stamp

ID = "5f2b8c0a9d3e4f17"
VERSION = "a3c1f09e5b7d2468"
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
WHEN = "2026-11-18T09:30:00.000000Z"
PREDICTION: dict[str, Any] = {"active_tb": 0.91, "healthy": 0.06, "sick_non_tb": 0.03}
BOX: dict[str, Any] = {"x1": 310, "y1": 120, "x2": 420, "y2": 260}
PNG = media_response("image/png", "The picture.")
A_DAY = {"Cache-Control": "private, max-age=86400, immutable"}  # for responses that never change
Plain = dict[str, Any]
Identifier = Annotated[str, Field(pattern="^[0-9a-f]{16}$", examples=[ID])]
Version = Annotated[str, Field(pattern="^[0-9a-f]{16}$", examples=[VERSION])]
When = Annotated[
    str,
    BeforeValidator(lambda when: stamp(when) if isinstance(when, datetime) else when),
    Field(description="UTC, ISO 8601.", examples=[WHEN]),
]
Probabilities = Annotated[
    dict[str, float], Field(description="Class to probability, the likeliest first.", examples=[PREDICTION])
]
VarianceGate = Annotated[
    float | None,
    BeforeValidator(lambda gate: None if gate == inf else gate),
    Field(description="Largest variance at which a leading finding counts; null: no limit.", examples=[0.002]),
]
ConceptName = Annotated[str, Field(min_length=1, max_length=63, examples=["active_tb"])]
LINE = r"^[^\x00-\x1f\x7f]*$"  # no control characters: PostgreSQL cannot store NUL, and terminals execute others
Number = Annotated[float, Field(allow_inf_nan=False)]
Coordinate = Annotated[Number, Field(ge=-1e6, le=1e6)]


class RequestModel(BaseModel):
    """Body of a request; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    """Body of a response, or a part of it; validates objects with attributes of the same names."""

    model_config = ConfigDict(frozen=True, from_attributes=True, json_schema_serialization_defaults_required=True)


class ProblemResponse(ResponseModel):
    """An error in the format of RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["about:blank"])
    status: int = Field(examples=[404])
    code: str = Field(description="For programs.", examples=["not_found"])
    detail: str = Field(description="What happened and what to do, for people.", examples=[f"There is no film '{ID}'."])


class BoxResponse(ResponseModel):
    """A rectangle in pixels of the original film."""

    x1: Number = Field(examples=[310.0])
    y1: Number = Field(examples=[120.0])
    x2: Number = Field(examples=[420.0])
    y2: Number = Field(examples=[260.0])


class BoxRequest(RequestModel):
    """A rectangle in pixels of the original film: x to the right, y down."""

    x1: Coordinate = Field(examples=[310.0])
    y1: Coordinate = Field(examples=[120.0])
    x2: Coordinate = Field(examples=[420.0])
    y2: Coordinate = Field(examples=[260.0])

    def to_box(self) -> Box:
        """Convert to a box of the library; a box without area is an error."""
        return Box(self.x1, self.y1, self.x2, self.y2)


FilmId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A film's id.")]
StudyId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A study's id.")]
ModelVersion = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[VERSION], description="A model's version.")]
_NAME = "^[a-z][a-z0-9_]*$"
ConceptPath = Annotated[
    str, Path(min_length=1, max_length=63, pattern=_NAME, examples=["active_tb"], description="A finding's short name.")
]
At = Annotated[
    int | None,
    Query(ge=0, le=10**6, examples=[1], description="The study after this many steps; default: as it is now."),
]
MapSide = Annotated[int, Query(ge=16, le=2048, examples=[512], description="Longest side in pixels.")]
MapKind = Annotated[
    Literal["mean", "disagreement"],
    Query(description="Similarity to the finding, or disagreement of its prototypes.", examples=["mean"]),
]
