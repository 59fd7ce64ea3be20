"""Parts of addresses."""

from typing import Annotated, Literal

from fastapi import Path, Query

from medgrape.server.schemas.common import ID, VERSION

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
