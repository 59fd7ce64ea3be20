"""What a film may cost, and how it becomes what the model sees."""

from typing import Annotated

from pydantic import Field

from medgrape.config.base import Settings


class FilmLimits(Settings):
    """What a film file may cost. All three are checked before any pixel is unpacked."""

    max_bytes: Annotated[int, Field(gt=0)] = 256 * 2**20
    """Size of the file, and of what a deflated DICOM file unpacks to."""
    max_pixels: Annotated[int, Field(gt=0)] = 64_000_000
    """Width times height; a large-format chest film has about 20 million."""
    max_ratio: Annotated[float, Field(gt=0)] = 500.0
    """Unpacked bytes for each byte of the file; real films stay below 60."""


class Preprocessing(Settings):
    """How an upright film becomes what the model sees."""

    size: Annotated[int, Field(ge=16, le=4096)] = 224
    """Both sides of the square that the film is stretched to."""
    equalise: bool = False
    """Even the contrast out from place to place (CLAHE), so that films of different exposure look alike."""
