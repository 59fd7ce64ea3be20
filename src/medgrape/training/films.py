"""Films that are learnt from, as tensors: pixels, labels, classes and boxes, in batches."""

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
from medgrape.datasets.augment import Lots, moved, view
from medgrape.datasets.cache import CachedFilms, FilmCache, fingerprint
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.errors import UserError
from medgrape.geometry import PatchGrid

LEARNT = ("train", "val")
"""The splits that a training sees."""
UNKNOWN_CLASS = -100
"""What torch's cross-entropy passes over."""
FINE = 4
"""Boxes are drawn this many times finer than patches before they are moved and averaged."""


class TrainingError(UserError):
    """A data set, or a setting, with which no model can be trained."""


@dataclass(frozen=True)
class Targets:
    """What is known about a batch of films."""

    labels: Float[Tensor, "b k"]
    """1 present, 0 absent, NaN not known."""
    classes: Int[Tensor, " b"]
    overlap: Float[Tensor, "b k h w"]
    """How much of each patch the boxes of each concept cover."""
    judged: Bool[Tensor, "b k"]
    """Where the boxes tell the whole truth: the concept has a box here, or is absent."""

    def to(self, device: torch.device) -> "Targets":
        """The same on another device."""
        return Targets(*(tensor.to(device) for tensor in (self.labels, self.classes, self.overlap, self.judged)))


@dataclass(frozen=True)
class TrainingFilms:
    """The readable films of some splits of a data set; a position counts within ``records``."""

    dataset: Dataset
    cached: CachedFilms
    records: tuple[FilmRecord, ...]
    places: tuple[int, ...]
    """Where in ``cached`` each film is."""

    @classmethod
    def of(cls, dataset: Dataset, cached: CachedFilms, *splits: str) -> "TrainingFilms":
        """The films of those splits that can be read."""
        wanted = [p for p in cached.readable() if dataset.pictured[p].split in splits]
        return cls(dataset, cached, tuple(dataset.pictured[p] for p in wanted), tuple(wanted))

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def refused(self) -> int:
        """How many films of the same splits could not be read."""
        splits = {film.split for film in self.records}
        return sum(self.dataset.pictured[place].split in splits for place in self.cached.refused)

    @cached_property
    def fingerprints(self) -> tuple[str, ...]:
        """What is in each film's file, so that a film is known again wherever it turns up."""
        return tuple(sorted({fingerprint(self.cached.contents[place]) for place in self.places}))

    @cached_property
    def labels(self) -> Float[Tensor, "n k"]:
        """1 present, 0 absent, NaN not known."""
        return torch.from_numpy(self.dataset.label_matrix(self.records)).float()

    @cached_property
    def classes(self) -> Int[Tensor, " n"]:
        """Position of each film's class."""
        order = {name: place for place, name in enumerate(self.dataset.classes)}
        return torch.tensor([order.get(film.class_name, UNKNOWN_CLASS) for film in self.records])

    @cached_property
    def boxed_concepts(self) -> Bool[Tensor, " k"]:
        """Concepts that somebody drew at least one box for, on these films."""
        ids = {film.id for film in self.records}
        drawn = {box.concept for box in self.dataset.boxes if box.film in ids}
        return torch.tensor([name in drawn for name in self.dataset.concepts.names])

    def boxed_pairs(self, positions: Sequence[int]) -> Int[Tensor, " pairs"]:
        """For each of those films, the concepts that it has boxes of."""
        boxed, names = self.dataset.boxes_by_film, self.dataset.concepts
        drawn = [{box.concept for box in boxed.get(self.records[position].id, ())} for position in positions]
        return torch.tensor([names.index(name) for one in drawn for name in sorted(one)], dtype=torch.long)

    def positions(self, split: str) -> list[int]:
        """The films of one split."""
        return [place for place, film in enumerate(self.records) if film.split == split]

    def pixels(self, positions: Sequence[int]) -> Float[Tensor, "b 1 side side"]:
        """Greys from 0 to 1."""
        stack = np.stack([self.cached[self.places[position]] for position in positions])
        return torch.from_numpy(stack).unsqueeze(1).float() / 255.0

    def seen(self, positions: Sequence[int], lots: Lots | None) -> Float[Tensor, "b 1 side side"]:
        """The films themselves, or with lots a view of each."""
        films = self.pixels(positions)
        return films if lots is None else view(films, lots)

    def targets(self, positions: Sequence[int], grid: tuple[int, int], lots: Lots | None = None) -> Targets:
        """What is known about those films, boxes moved along with their views."""
        overlap = torch.stack([self._overlap(self.records[position], grid) for position in positions])
        if lots is not None and overlap.any():
            overlap = moved(overlap, lots.moves(), "zeros")
        labels, covered = self.labels[list(positions)], F.avg_pool2d(overlap, FINE)
        judged = torch.stack([self._judged(position) for position in positions])
        lost = (labels != 0) & (covered.amax(dim=(-2, -1)) == 0)  # boxes that a view has moved off the film
        return Targets(labels, self.classes[list(positions)], covered, judged & ~lost)

    def _overlap(self, film: FilmRecord, grid: tuple[int, int]) -> Float[Tensor, "k fine_h fine_w"]:
        fine = PatchGrid(film.size, FINE * grid[0], FINE * grid[1])
        covered = torch.zeros(len(self.dataset.concepts), fine.rows, fine.columns)
        for drawn in self.dataset.boxes_by_film.get(film.id, ()):
            row = covered[self.dataset.concepts.index(drawn.concept)]
            torch.maximum(row, torch.from_numpy(fine.overlap(drawn.box)).float(), out=row)
        return covered

    def _judged(self, position: int) -> Bool[Tensor, " k"]:
        film = self.records[position]
        drawn = {box.concept for box in self.dataset.boxes_by_film.get(film.id, ())}
        boxed = torch.tensor([name in drawn for name in self.dataset.concepts.names])
        return boxed | (self.boxed_concepts & (self.labels[position] == 0))


def learnt_contents(data: Path, config: Config) -> list[str]:
    """SHA-256 of each film's file that a training would learn from or choose by; empty where there is no file."""
    dataset = Dataset.load(data)
    paths = [dataset.film_path(film) for film in dataset.pictured if film.split in LEARNT]
    return FilmCache(data / "cache", config).contents(paths)


def shuffled(positions: Sequence[int], batch: int, share: tuple[int, int], *seed: int) -> Iterator[list[int]]:
    """Batches in an order drawn by lot, the rest left over; each of several processes takes its share of a batch."""
    rank, world = share
    order = np.random.default_rng(seed).permutation(np.asarray(positions))
    size = whole_batch(len(order), batch, world)
    for start in range(0, len(order) - size + 1, size):
        yield [int(place) for place in order[start : start + size][rank::world]]


def whole_batch(films: int, batch: int, world: int) -> int:
    """The size of a batch: as asked for, at most what there is, and the same for every process."""
    size = min(batch, films)
    size -= size % world
    if size < 1:
        few = f"{films} films are" if films < world else f"A batch of {batch} is"
        raise TrainingError(f"{few} too few to train on with {world} processes.")
    return size


def in_order(positions: Sequence[int], batch: int) -> Iterator[list[int]]:
    """Batches in order, the last one as small as it is."""
    for start in range(0, len(positions), batch):
        yield list(positions[start : start + batch])
