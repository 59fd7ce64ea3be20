"""The explanation of one film: its evidence, which draws itself into a file or a notebook."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.explain.film_evidence import FilmEvidence


@dataclass(frozen=True, repr=False)
class Explanation(FilmEvidence):
    """The evidence on one film, with concepts ranked by strength."""

    def _repr_mimebundle_(self, **_formats: object) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the picture for a notebook."""
        from medgrape.explain.notebook import show  # matplotlib is slow to import

        return show(lambda: self, repr(self), complete=True)

    def save(self, path: Path | str) -> None:
        """Draw the evidence into a PNG file."""
        from medgrape.explain.render import save_picture

        save_picture(self, Path(path))
