"""Stage 2: what each finding looks like on each film that shows it, read off the frozen backbone and kept on disk.

Row by row: a vector, the concept it stands for (K stands for ordinary tissue) and the film it is from.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.config import VectorStage
from medgrape.files import ArrayWriter, mapped, whole_folder
from medgrape.geometry import PatchGrid
from medgrape.model.cam import concept_vectors
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.training.films import in_order
from medgrape.training.losses import MOSTLY
from medgrape.training.stored_features import BATCH, Inputs

LOOKED_AT = 0.5
"""Share of the CAM's peak beyond which a patch without box may belong to the finding."""


@dataclass(frozen=True)
class Vectors:
    """The rows, memory-mapped."""

    vectors: Float[np.ndarray, "n c"]
    groups: Int[np.ndarray, " n"]
    """Concept of each row; K is ordinary tissue."""
    films: Int[np.ndarray, " n"]
    """Position of the film in ``TrainingFilms``."""


@dataclass(frozen=True)
class Row:
    """One vector on its way to disk."""

    vector: Float[Tensor, " c"]
    group: int
    film: int


def open_vectors(
    model: Grape,
    inputs: Inputs,
    settings: VectorStage,
    folder: Path,
    track: Track,
    *,
    background: bool,
) -> Vectors:
    """The vectors of all films, from disk; written there by one pass of the model when they are not yet."""
    if not folder.is_dir():
        with whole_folder(folder) as draft, torch.no_grad():
            rows = _Pass(model, inputs, settings, background=background).rows(track)
            _write(rows, model.backbone.features, draft)
    return Vectors(*(mapped(folder / f"{name}.npy") for name in ("vectors", "groups", "films")))


def _write(rows: Iterable[Row], features: int, draft: Path) -> None:
    groups, films = [], []
    with ArrayWriter(draft / "vectors.npy", (features,)) as out:
        for row in rows:
            out.append(row.vector.numpy()[None])
            groups.append(row.group)
            films.append(row.film)
    np.save(draft / "groups.npy", np.array(groups, dtype=np.int64))
    np.save(draft / "films.npy", np.array(films, dtype=np.int64))


@dataclass(frozen=True)
class _Pass:
    model: Grape
    inputs: Inputs
    settings: VectorStage
    background: bool

    def rows(self, track: Track) -> Iterator[Row]:
        self.model.eval()
        batches = list(in_order(range(len(self.inputs.films)), BATCH))
        for positions in track(batches, "stage vectors", len(batches)):
            features = self.inputs.features(self.model, positions, 0)
            logits = self.model.cam(features)
            vectors = concept_vectors(features, logits).cpu()
            for place, position in enumerate(positions):
                yield from self._of_film(features[place].cpu(), logits[place].cpu(), vectors[place], position)

    def _of_film(
        self, features: Float[Tensor, "c h w"], logits: Float[Tensor, "k h w"], vectors: Float[Tensor, "k c"], film: int
    ) -> Iterator[Row]:
        labels, boxes = self.inputs.films.labels[film], self._boxes(film) if self.settings.boxes else {}
        patches = rearrange(features, "c h w -> (h w) c")
        for concept in torch.nonzero(labels == 1).flatten().tolist():
            for number, overlap in enumerate(boxes.get(concept, [])):
                yield Row(_inside(features, logits[concept], overlap), concept, film)
                yield from (Row(patches[p], concept, film) for p in self._drawn(overlap, (film, concept, number)))
            if concept not in boxes:
                yield Row(vectors[concept], concept, film)
                yield from (Row(patches[p], concept, film) for p in self._highest(logits[concept]))
        if self.background and self._shows_ordinary_tissue(film):
            yield from (Row(patches[p], len(labels), film) for p in self._ordinary(logits, labels, boxes, film))

    def _drawn(self, overlap: Float[Tensor, "h w"], seed: tuple[int, ...]) -> list[int]:
        """Some of the patches that a box covers, by lot."""
        covered = torch.nonzero(overlap.flatten() > MOSTLY).flatten().tolist()
        lot = np.random.default_rng(seed).permutation(len(covered))[: self.settings.inside]
        return [covered[place] for place in sorted(lot.tolist())]

    def _highest(self, logits: Float[Tensor, "h w"]) -> list[int]:
        """The patches around which the CAM is highest; one alone may be so by accident."""
        around = F.avg_pool2d(logits[None], kernel_size=3, stride=1, padding=1, count_include_pad=False).flatten()
        highest: list[int] = around.topk(min(self.settings.inside, len(around))).indices.tolist()
        return highest

    def _shows_ordinary_tissue(self, film: int) -> bool:
        """Normal films, and what lies beside the findings of others; a film ill in another way is neither."""
        normal, films = self.settings.normal, self.inputs.films
        return not normal or films.records[film].class_name in normal or bool((films.labels[film] == 1).any())

    def _boxes(self, film: int) -> dict[int, list[Float[Tensor, "h w"]]]:
        """How much of each patch each box covers, by concept."""
        films = self.inputs.films
        record = films.records[film]
        grid = PatchGrid(record.size, *self.inputs.grid)
        found: dict[int, list[Tensor]] = {}
        for drawn in films.dataset.boxes_by_film.get(record.id, ()):
            overlap = torch.from_numpy(grid.overlap(drawn.box)).float()
            found.setdefault(films.dataset.concepts.index(drawn.concept), []).append(overlap)
        return found

    def _ordinary(
        self,
        logits: Float[Tensor, "k h w"],
        labels: Float[Tensor, " k"],
        boxes: dict[int, list[Float[Tensor, "h w"]]],
        film: int,
    ) -> list[int]:
        """Patches that show no finding: outside every box, and where a finding has no box, where its CAM is low."""
        free = torch.ones_like(logits[0], dtype=torch.bool)
        for concept in range(len(labels)):
            for overlap in boxes.get(concept, []):
                free &= overlap == 0
            if concept not in boxes and labels[concept] != 0:
                seen = torch.sigmoid(logits[concept])
                free &= seen < LOOKED_AT * seen.max()
        patches = torch.nonzero(free.flatten()).flatten()
        if len(patches) == 0:
            return []
        by_liking = patches[logits.amax(dim=0).flatten()[patches].argsort(descending=True, stable=True)]
        hard = self.settings.ordinary // 2
        others = min(self.settings.ordinary - hard, len(patches))
        lot = np.random.default_rng((film, len(patches))).choice(len(patches), others, replace=False)
        return [*by_liking[:hard].tolist(), *patches[torch.from_numpy(np.sort(lot))].tolist()]


def _inside(
    features: Float[Tensor, "c h w"], logits: Float[Tensor, "h w"], overlap: Float[Tensor, "h w"]
) -> Float[Tensor, " c"]:
    """Features averaged inside one box, most where the CAM looks; a box smaller than a patch still counts."""
    weights = overlap * torch.exp(logits - logits.max())
    if float(weights.sum()) <= 0.0:  # the box lies beside the film, or the CAM is blind there
        weights = overlap if float(overlap.sum()) > 0.0 else torch.softmax(logits.flatten(), 0).view_as(logits)
    return torch.einsum("chw,hw->c", features, weights / weights.sum())
