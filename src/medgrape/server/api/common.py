"""Parts of addresses."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

ID = "5f2b8c0a9d3e4f17"
VERSION = "a3c1f09e5b7d2468"
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
WHEN = "2026-11-18T09:30:00.000000Z"
PREDICTION: dict[str, Any] = {"active_tb": 0.91, "healthy": 0.06, "sick_non_tb": 0.03}
Identifier = Annotated[str, Field(pattern="^[0-9a-f]{16}$", examples=[ID])]
Version = Annotated[str, Field(pattern="^[0-9a-f]{16}$", examples=[VERSION])]
When = Annotated[str, Field(description="UTC, ISO 8601.", examples=[WHEN])]
Shares = Annotated[
    dict[str, float], Field(description="Class to probability, the likeliest first.", examples=[PREDICTION])
]
ConceptName = Annotated[str, Field(min_length=1, max_length=63, examples=["active_tb"])]
LINE = r"^[^\x00-\x1f\x7f]*$"
"""A line of text: without control characters, which PostgreSQL cannot keep and terminals obey."""
Number = Annotated[float, Field(allow_inf_nan=False)]


class Asked(BaseModel):
    """What a caller sends: nothing that nobody reads."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """What a caller gets."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class ProblemTold(Told):
    """What went wrong, as RFC 9457 tells it."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {"type": "about:blank", "status": 404, "code": "not_found", "detail": f"There is no film '{ID}'."}
            ]
        },
    )

    type: str = Field(examples=["about:blank"])
    status: int = Field(examples=[404])
    code: str = Field(description="A word that programs can rely on.", examples=["not_found"])
    detail: str = Field(description="A sentence that says what to do.", examples=[f"There is no film '{ID}'."])


class BoxTold(Told):
    """A rectangle in pixels of the original film."""

    x1: Number = Field(examples=[310.0])
    y1: Number = Field(examples=[120.0])
    x2: Number = Field(examples=[420.0])
    y2: Number = Field(examples=[260.0])


class BoxAsked(Asked):
    """A rectangle in pixels of the original film: x to the right, y down."""

    x1: Number = Field(ge=-1e6, le=1e6, examples=[310.0])
    y1: Number = Field(ge=-1e6, le=1e6, examples=[120.0])
    x2: Number = Field(ge=-1e6, le=1e6, examples=[420.0])
    y2: Number = Field(ge=-1e6, le=1e6, examples=[260.0])


Plain = dict[str, Any]
FilmId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A film's id.")]
StudyId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A study's id.")]
JobId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A job's id.")]
TokenId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A token's id.")]
ModelVersion = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[VERSION], description="A model's version.")]
Concept = Annotated[
    str, Path(min_length=1, max_length=63, pattern="^[a-z][a-z0-9_]*$", examples=["active_tb"],
              description="A finding's short name."),
]  # fmt: skip
Exemplar = Annotated[int, Path(ge=0, le=2**31 - 1, examples=[7], description="Number of a training film's picture.")]
UserName = Annotated[str, Path(min_length=1, max_length=64, examples=["ada"], description="A user's name.")]
CorrectionNumber = Annotated[
    int, Path(ge=0, le=10**6, examples=[0], description="Which of the study's corrections as it stands, from 0.")
]
At = Annotated[
    int | None,
    Query(ge=0, le=10**6, examples=[1], description="As the study stood after so many steps; else as it stands."),
]
Side = Annotated[
    int | None, Query(ge=16, le=4096, examples=[1024], description="Longest side in pixels; else as large as the film.")
]
MapSide = Annotated[int, Query(ge=16, le=2048, examples=[512], description="Longest side in pixels.")]
Kind = Annotated[
    Literal["mean", "disagreement"],
    Query(description="Where the finding is seen, or where its prototypes disagree.", examples=["mean"]),
]
