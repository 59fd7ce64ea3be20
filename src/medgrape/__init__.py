"""Read chest X-rays with concepts that one can point at, correct and extend."""

from pathlib import Path
from typing import TYPE_CHECKING

from medgrape.concepts import Concept, ConceptSet
from medgrape.errors import UserError
from medgrape.geometry import Box, FilmSize, PatchGrid

if TYPE_CHECKING:
    from medgrape.feedback.reader import Reader

__version__ = "0.1.0"

__all__ = ["Box", "Concept", "ConceptSet", "FilmSize", "PatchGrid", "UserError", "__version__", "load"]


def load(run: Path | str, revision: str | None = None) -> "Reader":
    """A reader for the run in a folder, for the export in an .onnx file, or for the run ``org/name`` on a model hub.

    Every checksum is compared. ``revision`` is a branch, a tag or, best, a commit of the hub's repository.
    """
    from medgrape.feedback.reader import load as load_reader  # torch takes seconds to import

    return load_reader(run, revision)
