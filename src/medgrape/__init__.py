"""Read chest X-rays with concepts that can be localised, corrected and extended."""

from pathlib import Path
from typing import TYPE_CHECKING

from medgrape.concepts import Concept, ConceptSet
from medgrape.errors import UserError
from medgrape.geometry import Box, FilmSize, PatchGrid

if TYPE_CHECKING:
    from medgrape.reader import Reader
    from medgrape.sklearn.classifier import GrapeClassifier
    from medgrape.sklearn.inputs import labelled_films

__version__ = "0.1.0"
__all__ = [
    "Box", "Concept", "ConceptSet", "FilmSize", "GrapeClassifier", "PatchGrid", "UserError", "__version__",
    "labelled_films", "load",
]  # fmt: skip
_SLOW_TO_IMPORT = ("GrapeClassifier", "labelled_films")


def load(run: Path | str, revision: str | None = None) -> "Reader":
    """Load a model: a run folder, an export in an .onnx file, or the run ``org/name`` on a model hub.

    All checksums are verified. ``revision`` is a branch, a tag or, best, a commit of the hub's repository.
    """
    from medgrape.reader import load as load_reader  # slow to import

    return load_reader(run, revision)


def __getattr__(name: str) -> object:
    """Import names that need torch and scikit-learn when they are first accessed."""
    if name in _SLOW_TO_IMPORT:
        from medgrape import sklearn as estimator

        return getattr(estimator, name)
    raise AttributeError(f"module 'medgrape' has no attribute {name!r}")
