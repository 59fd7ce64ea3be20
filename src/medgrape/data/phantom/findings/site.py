"""Where one lesion lies, how large it is and how plainly it shows."""

from dataclasses import dataclass

from medgrape.data.phantom.anatomy import LEFT, RIGHT
from medgrape.data.phantom.curve import Pair


@dataclass(frozen=True)
class Site:
    """A box in unit coordinates of the upright chest, to be filled by the finding as far as there is lung."""

    x: float
    y: float
    width: float
    height: float
    contrast: float

    @property
    def centre(self) -> Pair:
        """Across and down."""
        return self.x, self.y

    @property
    def half(self) -> Pair:
        """Half the width and half the height."""
        return self.width / 2, self.height / 2

    @property
    def side(self) -> int:
        """The patient's right (-1) or left (+1)."""
        return RIGHT if self.x < 0.5 else LEFT

    def shared(self, other: "Site") -> float:
        """The area that two sites have in common."""
        across = min(self.x + self.half[0], other.x + other.half[0]) - max(
            self.x - self.half[0], other.x - other.half[0]
        )
        down = min(self.y + self.half[1], other.y + other.half[1]) - max(self.y - self.half[1], other.y - other.half[1])
        return max(across, 0.0) * max(down, 0.0)

    @property
    def bilateral(self) -> bool:
        """So wide that it reaches into both lungs."""
        return self.width > 0.42
