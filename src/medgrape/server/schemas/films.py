"""Films."""

from pydantic import Field

from medgrape.server.schemas.common import Identifier, Shares, Told, Version, When


class FilmSizeTold(Told):
    """In pixels of the original film, as it stands upright."""

    width: int = Field(examples=[2048])
    height: int = Field(examples=[2500])


class FilmFactsTold(Told):
    """What a film is; of its patient only sex and age stay."""

    format: str = Field(examples=["DICOM"])
    size: FilmSizeTold
    bits: int = Field(examples=[12])
    photometric: str = Field(examples=["MONOCHROME2"])
    transfer_syntax: str | None = Field(examples=["JPEG 2000 Image Compression (Lossless Only)"])
    modality: str | None = Field(examples=["DX"])
    view: str | None = Field(examples=["PA"])
    laterality: str | None = Field(examples=[None])
    spacing: tuple[float, float] | None = Field(
        description="Millimetres between rows and columns.", examples=[(0.14, 0.14)]
    )
    applied: tuple[str, ...] = Field(
        description="What was done to the stored pixels, in order.", examples=[("modality rescale",)]
    )
    warnings: tuple[str, ...] = Field(description="What a reader should know before trusting the film.", examples=[()])


class ReadingTold(Told):
    """That somebody read the film."""

    reader: str = Field(examples=["ada"])
    model: Version
    changed_at: When
    study: Identifier | None = Field(description="Only of one's own studies, or for a curator.")
    corrections: int | None = Field(description="How many steps were taken; likewise.", examples=[2])
    prediction: Shares | None = Field(description="What came of it; likewise, so that readers stay independent.")


class FilmTold(Told):
    """A film in the list."""

    id: Identifier
    arrived_at: When
    arrived_by: str = Field(examples=["ada"])
    facts: FilmFactsTold
    sex: str = Field(description="M, F, O, or empty.", examples=["F"])
    age: int | None = Field(description="In years; 90 for all who are older.", examples=[57])
    prediction: Shares | None = Field(description="Of the model in use; null until it has looked at the film.")
    readings: tuple[ReadingTold, ...]


class FilmTaken(Told):
    """A film that was uploaded."""

    known: bool = Field(description="Whether the very same file was here before; then nothing was added.")
    film: FilmTold


class FilmPage(Told):
    """A page of films, the newest first."""

    total: int = Field(description="How many films fit what was asked for, on all pages.", examples=[120])
    page: int = Field(examples=[1])
    size: int = Field(examples=[50])
    films: tuple[FilmTold, ...]
