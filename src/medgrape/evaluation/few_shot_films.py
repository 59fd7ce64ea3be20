"""Films that a forgotten concept is learnt from and pointed at on, encoded once and kept in memory."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.evaluation.localisation import boxes_of
from medgrape.geometry import PatchGrid, peak
from medgrape.model.atlas import Anchors
from medgrape.model.evidence import mean_maps
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.vocabulary.new_concept import Example, covered

BATCH = 32
RIDGE = 0.1
"""Of the regression from sentences to anchors: few sentences must not be believed to the last digit."""


@dataclass(frozen=True)
class Candidate:
    """A concept with boxes on both sides."""

    name: str
    row: int
    taught: tuple[FilmRecord, ...]
    """Training films with a box of it."""
    tested: tuple[FilmRecord, ...]

    def drawn(self, films: int, seed: int) -> list[FilmRecord]:
        """So many training films by lot; a larger number holds those of a smaller one."""
        order = np.random.default_rng([seed, self.row]).permutation(len(self.taught))
        return [self.taught[place] for place in order[:films]]


@dataclass(frozen=True)
class Scene:
    """Everything that is needed, encoded once."""

    model: Grape
    dataset: Dataset
    patches: dict[str, Float[Tensor, "d h w"]]
    """By film, in half precision."""

    def anchor(self, row: int) -> Float[Tensor, " d"] | None:
        """Where the text puts a concept; None where the model reads no text."""
        return None if self.model.anchors is None else untaught_anchor(self.model.anchors, row)

    def example(self, film: FilmRecord, concept: str, *, boxes: bool) -> Example:
        """A film to learn from."""
        patches = self.patches[film.id].float()
        drawn = boxes_of(self.dataset, film, concept)
        grid = int(patches.shape[-2]), int(patches.shape[-1])
        return Example(patches, covered(drawn, film.size, grid) if boxes else None)

    def hits(self, candidate: Candidate, prototypes: Float[Tensor, "m d"]) -> float:
        """Share of the films with a box of the concept on which its mean map is highest inside one."""
        return float(np.mean([self._hit(film, candidate.name, prototypes) for film in candidate.tested]))

    def _hit(self, film: FilmRecord, concept: str, prototypes: Float[Tensor, "m d"]) -> bool:
        found = mean_maps(self.patches[film.id].float().unsqueeze(0), [prototypes])[0, 0].numpy()
        x, y = peak(found, PatchGrid(film.size, *found.shape))
        return any(box.contains(x, y) for box in boxes_of(self.dataset, film, concept))


@torch.no_grad()
def untaught_anchor(anchors: Anchors, row: int) -> Float[Tensor, " d"]:
    """Where a sentence would lie, had the projection been learnt without it.

    In training every prototype is pulled to its own anchor, so the anchor itself knows what the prototypes know, and
    learning "from text alone" would be looking it up. Here the other anchors are mixed, each by how much its sentence
    is like this one (ridge regression from sentences to anchors). A lone concept has no others: its own anchor.
    """
    text: Tensor = anchors.text
    placed: Tensor = anchors()
    others = [other for other in range(len(text)) if other != row]
    if not others:
        return placed[row]
    alike = text[others] @ text[others].T + RIDGE * torch.eye(len(others))
    return F.normalize(torch.linalg.solve(alike, text[others] @ text[row]) @ placed[others], dim=-1)


@torch.no_grad()
def encoded(
    model: Grape, cached: CachedFilms, places: dict[str, int], track: Track
) -> dict[str, Float[Tensor, "d h w"]]:
    """The patches of some films, by name; ``places`` tells where each is."""
    names, found = list(places), dict[str, Tensor]()
    batches = [names[start : start + BATCH] for start in range(0, len(names), BATCH)]
    for batch in track(batches, f"encoding {len(names):,} films", len(batches)):
        pixels = np.stack([cached[places[name]] for name in batch])
        patches = model.patches(torch.from_numpy(pixels).unsqueeze(1).float() / 255.0)
        found |= dict(zip(batch, patches.half(), strict=True))
    return found
