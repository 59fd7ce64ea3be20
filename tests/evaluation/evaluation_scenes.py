"""Synthetic films and readings for the tests of the evaluation."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source
from medgrape.evaluation.readings import Readings
from medgrape.geometry import Box, FilmSize

CAVITY = Concept("cavity", "Cavity", "A thick-walled lucency.")
EFFUSION = Concept("effusion", "Pleural effusion", "Fluid at the base of the lung.")
SIDE = 8
"""Patches each way."""


def film(name, class_name="ill", *, split="test", patient=None, size=(800, 640), **labels):
    """One film; a concept that is not named is absent."""
    known = {"cavity": False, "effusion": False} | labels
    return FilmRecord(name, f"{name}.png", class_name, patient or name, FilmSize(*size), known, split)


def dataset(
    films: Sequence[FilmRecord],
    boxes: Mapping[tuple[str, str], Sequence[Box]] | None = None,
    classes=("healthy", "ill"),
) -> Dataset:
    drawn = tuple(DrawnBox(*key, box) for key, result in (boxes or {}).items() for box in result)
    source = Source("scene", "nowhere", {"labels.csv": "ab" * 32}, ("drawn by hand",))
    return Dataset("scene", tuple(classes), ConceptSet((CAVITY, EFFUSION)), Path("films"), tuple(films), drawn, source)


def readings(
    data: Dataset, *, probabilities=None, scores=None, mean_maps=None, max_maps=None, cam_maps=None, split: str = "test"
) -> Readings:
    """Readings of the films of a split; what is not given is constant."""
    films, concepts, classes = data.in_split(split), len(data.concepts), len(data.classes)
    flat = np.zeros((len(films), concepts, SIDE, SIDE), dtype=np.float32)
    mean_maps = flat if mean_maps is None else np.asarray(mean_maps, dtype=np.float32)
    return Readings(
        data,
        films,
        np.full((len(films), classes), 1 / classes) if probabilities is None else np.asarray(probabilities, float),
        mean_maps.max(axis=(2, 3)) if scores is None else np.asarray(scores, float),
        mean_maps,
        mean_maps if max_maps is None else np.asarray(max_maps, dtype=np.float32),
        {name: np.asarray(maps, dtype=np.float32) for name, maps in (cam_maps or {}).items()},
    )


def bump(row: int, column: int, side: int = SIDE) -> np.ndarray:
    """A map with its peak in a patch."""
    down, across = np.mgrid[0:side, 0:side]
    return np.exp(-((down - row) ** 2 + (across - column) ** 2) / 4).astype(np.float32)


def patch_box(row: int, column: int, size=(800, 640), side: int = SIDE) -> Box:
    """The box around a patch of a film."""
    wide, high = size[0] / side, size[1] / side
    return Box(column * wide, row * high, (column + 1) * wide, (row + 1) * high)


def drawn_dataset(count: int = 60, seed: int = 0, classes=("healthy", "latent", "active")) -> Readings:
    """Sixty test films read by a mediocre model, and sixty training films; two films from each patient."""
    chance = np.random.default_rng(seed)
    films, boxes, maps = [], {}, []
    for number in range(2 * count):
        split = "train" if number < count else "test"
        cavity, effusion = bool(chance.random() < 0.4), bool(chance.random() < 0.3)
        size = ((800, 640), (600, 900), (512, 512))[number % 3]
        name = classes[2 if cavity else int(effusion)]
        labels = {"cavity": cavity, "effusion": None if number % 11 == 0 else effusion}
        films.append(film(f"film{number:03}", name, split=split, patient=f"p{number // 2}", size=size, **labels))
        spots = {}
        for concept, shown, row in (("cavity", cavity, 2), ("effusion", labels["effusion"], 5)):
            spots[concept] = (int(chance.integers(row - 1, row + 2)), int(chance.integers(1, 7)))
            if shown:
                box = patch_box(*spots[concept], size)
                boxes[films[-1].id, concept] = [Box(box.x1 - box.width, box.y1, box.x2 + box.width, box.y2)]
        if split == "test":
            maps.append([_seen(chance, spots["cavity"], 0.9), _seen(chance, spots["effusion"], 0.45)])
    data = dataset(films, boxes, classes)
    truth = np.array([data.classes.index(record.class_name) for record in data.in_split("test")])
    logits = 1.6 * np.eye(3)[truth] + chance.normal(size=(count, 3))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    mean_maps = np.array(maps)
    present = np.nan_to_num(data.label_matrix(data.in_split("test")))
    scores = present + chance.normal(size=(count, 2))
    noise = chance.normal(scale=0.1, size=mean_maps.shape)
    return readings(data, probabilities=probabilities, scores=scores, mean_maps=mean_maps, max_maps=mean_maps + noise)


def _seen(chance: np.random.Generator, spot: tuple[int, int], skill: float) -> np.ndarray:
    if chance.random() > skill:
        spot = (int(chance.integers(8)), int(chance.integers(8)))
    return bump(*spot) + chance.normal(scale=0.03, size=(SIDE, SIDE)).astype(np.float32)
