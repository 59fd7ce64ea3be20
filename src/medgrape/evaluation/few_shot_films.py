"""Films of a few-shot trial, encoded once, and the text anchor of a concept that the projection has forgotten."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.evaluation.localisation import boxes_of, highest_point
from medgrape.model.atlas import Anchors
from medgrape.model.evidence import mean_maps
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.vocabulary.new_concept import Example, covered

BATCH = 32
RIDGE = 0.1  # regularises the regression from sentences to anchors, which has few sentences


@dataclass(frozen=True)
class Candidate:
    """A concept with boxes on training films and on the films of the test."""

    name: str
    row: int  # index in the model's vocabulary
    training: tuple[FilmRecord, ...]
    tested: tuple[FilmRecord, ...]

    def draw_films(self, films: int, seed: int) -> list[FilmRecord]:
        """Draw training films at random; a larger number includes the films of a smaller one."""
        order = np.random.default_rng([seed, self.row]).permutation(len(self.training))
        return [self.training[place] for place in order[:films]]


@dataclass(frozen=True)
class EncodedFilms:
    """A model, a data set, and the patches of the films that the trial needs."""

    model: Grape
    dataset: Dataset
    patches: dict[str, Float[Tensor, "d h w"]]  # by film, in half precision

    def anchor(self, row: int) -> Float[Tensor, " d"] | None:
        """Return the text anchor of a concept; None if the model reads no text."""
        return None if self.model.anchors is None else untaught_anchor(self.model.anchors, row)

    def example(self, film: FilmRecord, concept: str, *, boxes: bool) -> Example:
        """Return a film as an example to learn from."""
        patches = self.patches[film.id].float()
        grid = int(patches.shape[-2]), int(patches.shape[-1])
        return Example(patches, covered(boxes_of(self.dataset, film, concept), film.size, grid) if boxes else None)

    def hits(self, candidate: Candidate, prototypes: Float[Tensor, "m d"]) -> float:
        """Return the share of tested films on which the mean map is highest inside a box of the concept."""
        hits = []
        for film in candidate.tested:
            mean_map = mean_maps(self.patches[film.id].float().unsqueeze(0), [prototypes])[0, 0].numpy()
            hits.append(highest_point(mean_map, film, boxes_of(self.dataset, film, candidate.name)).hit)
        return float(np.mean(hits))


@torch.no_grad()
def untaught_anchor(anchors: Anchors, row: int) -> Float[Tensor, " d"]:
    """Estimate where the projection would put a sentence if it had been trained without it.

    In training every prototype is pulled to its own anchor, so the anchor has learned what the prototypes know, and
    learning "from text alone" would mean looking it up. Instead the other anchors are mixed by ridge regression from
    sentences to anchors, each by the similarity of its sentence to this one. A single concept keeps its own anchor.
    """
    text: Tensor = anchors.text
    placed: Tensor = anchors()
    others = [other for other in range(len(text)) if other != row]
    if not others:
        return placed[row]
    gram = text[others] @ text[others].T + RIDGE * torch.eye(len(others))
    return F.normalize(torch.linalg.solve(gram, text[others] @ text[row]) @ placed[others], dim=-1)


@torch.no_grad()
def encode_films(
    model: Grape, cached: CachedFilms, places: dict[str, int], track: Track
) -> dict[str, Float[Tensor, "d h w"]]:
    """Return the patches of films by id; ``places`` are their positions in the cache."""
    names = {place: name for name, place in places.items()}
    encoded: dict[str, Tensor] = {}
    for batch, films in cached.batches(list(names), BATCH, f"encoding {len(names):,} films", track):
        encoded |= zip((names[place] for place in batch), model.patches(torch.from_numpy(films)).half(), strict=True)
    return encoded
