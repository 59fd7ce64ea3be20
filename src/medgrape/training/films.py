"""Training films as tensors: pixels, labels, classes and boxes, in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from medgrape.config import Config
from medgrape.datasets.augment import RandomViews, augmented, transformed
from medgrape.datasets.cache import CachedFilms, FilmCache, fingerprint
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.errors import UserError
from medgrape.geometry import PatchGrid

LEARNT = ("train", "val")  # The splits that a training uses
UNKNOWN_CLASS = -100  # The class that torch's cross-entropy ignores
FINE = 4  # Boxes are drawn on a grid that is this many times finer than the patches, and averaged after augmentation


class TrainingError(UserError):
    """A data set or a setting with which no model can be trained."""


@dataclass(frozen=True)
class Targets:
    """Labels, classes and boxes of a batch of films."""

    labels: Float[Tensor, "b k"]  # 1 present, 0 absent, NaN unknown
    classes: Int[Tensor, " b"]
    overlap: Float[Tensor, "b k h w"]  # Fraction of each patch that the boxes of each concept cover
    boxes_complete: Bool[Tensor, "b k"]  # Whether the boxes are complete: the concept has a box, or is absent

    def to(self, device: torch.device) -> "Targets":
        """Copy to a device."""
        return Targets(*(tensor.to(device) for tensor in vars(self).values()))


@dataclass(frozen=True)
class TrainingFilms:
    """The readable films of some splits of a data set; positions refer to ``records``."""

    dataset: Dataset
    cached: CachedFilms
    records: tuple[FilmRecord, ...]
    places: tuple[int, ...]  # Position of each film in `cached`

    @classmethod
    def of(cls, dataset: Dataset, cached: CachedFilms, *splits: str) -> "TrainingFilms":
        """Select the readable films of these splits."""
        places = [place for place in cached.readable() if dataset.pictured[place].split in splits]
        return cls(dataset, cached, tuple(dataset.pictured[place] for place in places), tuple(places))

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def refused(self) -> int:
        """Number of films of the same splits that cannot be read."""
        splits = {film.split for film in self.records}
        return sum(self.dataset.pictured[place].split in splits for place in self.cached.refused)

    @cached_property
    def fingerprints(self) -> tuple[str, ...]:
        """Fingerprints of the film files, by which a film is recognised under any name."""
        return tuple(sorted({fingerprint(self.cached.contents[place]) for place in self.places}))

    @cached_property
    def labels(self) -> Float[Tensor, "n k"]:
        """Labels of all films: 1 present, 0 absent, NaN unknown."""
        return torch.from_numpy(self.dataset.label_matrix(self.records)).float()

    @cached_property
    def classes(self) -> Int[Tensor, " n"]:
        """Index of each film's class."""
        index = {name: number for number, name in enumerate(self.dataset.classes)}
        return torch.tensor([index.get(film.class_name, UNKNOWN_CLASS) for film in self.records])

    @cached_property
    def boxed(self) -> Bool[Tensor, "n k"]:
        """Whether a film has a box of a concept."""
        boxed = {(box.film, box.concept) for box in self.dataset.boxes}
        names = self.dataset.concepts.names
        return torch.tensor([[(film.id, name) in boxed for name in names] for film in self.records], dtype=torch.bool)

    def positions(self, split: str) -> list[int]:
        """Return the films of a split."""
        return [position for position, film in enumerate(self.records) if film.split == split]

    def pixels(self, positions: Sequence[int]) -> Float[Tensor, "b 1 side side"]:
        """Return grey levels from 0 to 1."""
        return torch.from_numpy(self.cached.stack([self.places[position] for position in positions]))

    def augmented(self, positions: Sequence[int], views: RandomViews | None) -> Float[Tensor, "b 1 side side"]:
        """Return the films, or a random view of each."""
        films = self.pixels(positions)
        return films if views is None else augmented(films, views)

    def targets(self, positions: Sequence[int], grid: tuple[int, int], views: RandomViews | None = None) -> Targets:
        """Return the targets of films; boxes are augmented with the films."""
        rows = list(positions)
        overlap = torch.stack([self._overlap(self.records[position], grid) for position in rows])
        if views is not None and overlap.any():
            overlap = transformed(overlap, views.transforms(), "zeros")
        labels, covered = self.labels[rows], F.avg_pool2d(overlap, FINE)
        complete = self.boxed[rows] | (self.boxed.any(dim=0) & (labels == 0))
        lost = (labels != 0) & (covered.amax(dim=(-2, -1)) == 0)  # an augmented view may move a box off the film
        return Targets(labels, self.classes[rows], covered, complete & ~lost)

    def _overlap(self, film: FilmRecord, grid: tuple[int, int]) -> Float[Tensor, "k fine_h fine_w"]:
        fine = PatchGrid(film.size, FINE * grid[0], FINE * grid[1])
        covered = torch.zeros(len(self.dataset.concepts), fine.rows, fine.columns)
        for drawn in self.dataset.boxes_by_film.get(film.id, ()):
            row = covered[self.dataset.concepts.index(drawn.concept)]
            torch.maximum(row, torch.from_numpy(fine.overlap(drawn.box)).float(), out=row)
        return covered


def learnt_contents(data: Path, config: Config) -> list[str]:
    """Return the SHA-256 of each training and validation film; an empty string for a missing file."""
    dataset = Dataset.load(data)
    paths = [dataset.film_path(film) for film in dataset.pictured if film.split in LEARNT]
    return FilmCache(data / "cache", config).contents(paths)


def shuffled(positions: Sequence[int], batch: int, share: tuple[int, int], *seed: int) -> Iterator[list[int]]:
    """Yield batches in random order without an incomplete last one; each process gets its share of every batch."""
    rank, world = share
    order = np.random.default_rng(seed).permutation(np.asarray(positions))
    size = whole_batch(len(order), batch, world)
    for start in range(0, len(order) - size + 1, size):
        yield [int(position) for position in order[start : start + size][rank::world]]


def whole_batch(films: int, batch: int, world: int) -> int:
    """Return the batch size: at most the number of films, and divisible by the number of processes."""
    size = min(batch, films)
    size -= size % world
    if size < 1:
        few = f"{films} films are" if films < world else f"A batch of {batch} is"
        raise TrainingError(f"{few} too few to train on with {world} processes.")
    return size
