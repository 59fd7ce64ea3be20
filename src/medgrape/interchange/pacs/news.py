"""What a watch tells while it goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class News:
    """Something that happened."""

    what: Literal["read", "refused", "stored", "unsendable", "later", "away", "back"]
    film: str = ""
    words: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"what": self.what, "film": self.film or None, "words": self.words or None}


Tell = Callable[[News], None]
