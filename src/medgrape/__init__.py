"""Read chest X-rays with concepts that one can point at, correct and extend."""

from medgrape.concepts import Concept, ConceptSet
from medgrape.geometry import Box, FilmSize, PatchGrid

__version__ = "0.1.0"

__all__ = ["Box", "Concept", "ConceptSet", "FilmSize", "PatchGrid", "__version__"]
