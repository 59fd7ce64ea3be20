"""What a model sees inside every box of a data set: what a safety check learns from, and what it is judged on."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.cache import CachedFilms, cached_films, fingerprint
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, check_concepts
from medgrape.geometry import Box, BoxOutsideError, PatchGrid
from medgrape.model.evidence import disagreement_maps, mean_maps
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.safety.check import inside

BATCH = 32


@dataclass(frozen=True)
class MeasuredBox:
    """One box that somebody drew, and every concept that the model knows inside it."""

    film: FilmRecord
    concept: str
    """What the box is said to show."""
    box: Box
    means: Float[Tensor, " k"]
    """Of ``mu`` over the box, in the order of the run's concepts."""
    variances: Float[Tensor, " k"]
    """The same of ``U``."""

    @property
    def patient(self) -> str:
        """Whose film it is; a film of nobody known is a patient of its own."""
        return self.film.patient or self.film.id


def boxes_seen(
    loaded: LoadedRun, dataset: Dataset, data: Path, split: str, track: Track = quietly
) -> tuple[MeasuredBox, ...]:
    """Every box on the readable films of a split, film by film."""
    check_concepts(loaded.run.concepts, dataset)
    return measure_boxes(loaded.run, dataset, cached_films(loaded.run.config, dataset, data, track), split, track)


@torch.no_grad()
def measure_boxes(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly, *, highest: bool = False
) -> tuple[MeasuredBox, ...]:
    """The same on films that were decoded already; ``highest`` takes the maximum of ``mu`` over a box for its mean."""
    found: list[MeasuredBox] = []
    for films, greys in boxed_films(dataset, cached, split, track):
        patches, prototypes = run.model.patches(greys), run.model.atlas.in_use
        means, variances = mean_maps(patches, prototypes), disagreement_maps(patches, prototypes)
        for place, film in enumerate(films):
            for drawn in boxes_on(dataset, film):
                inner = (highest_within if highest else within)(means[place], film, drawn.box)
                found.append(
                    MeasuredBox(film, drawn.concept, drawn.box, inner, within(variances[place], film, drawn.box))
                )
    return tuple(found)


def boxed_films(
    dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly
) -> Iterator[tuple[Sequence[FilmRecord], Float[Tensor, "b 1 side side"]]]:
    """The films of a split that have boxes, as a model sees them, a small batch at a time."""
    wanted = [place for place in cached.readable() if _has_boxes(dataset, dataset.pictured[place], split)]
    batches = [wanted[start : start + BATCH] for start in range(0, len(wanted), BATCH)]
    for batch in track(batches, f"looking into the boxes of {len(wanted):,} {split} films", len(batches)):
        greys = torch.from_numpy(np.stack([cached[place] for place in batch])).unsqueeze(1).float() / 255.0
        yield [dataset.pictured[place] for place in batch], greys


def boxes_on(dataset: Dataset, film: FilmRecord) -> list[DrawnBox]:
    """The boxes of a film, but for those that lie beside it, of which medgrape data check tells."""
    return [drawn for drawn in dataset.boxes_by_film[film.id] if drawn.box.clipped(film.size) is not None]


def within(maps: Float[Tensor, "k h w"], film: FilmRecord, box: Box) -> Float[Tensor, " k"]:
    """Mean of each map over a box of the data set; one that lies beside its film is refused by the film's name."""
    try:
        return inside(maps, PatchGrid(film.size, maps.shape[-2], maps.shape[-1]), box)
    except BoxOutsideError as error:
        raise BoxOutsideError(f"Film {film.id!r}, in boxes.csv: {error}") from None


def highest_within(maps: Float[Tensor, "k h w"], film: FilmRecord, box: Box) -> Float[Tensor, " k"]:
    """Maximum of each map over the patches that a box touches."""
    touched = torch.from_numpy(PatchGrid(film.size, maps.shape[-2], maps.shape[-1]).overlap(box)) > 0
    return maps[:, touched].amax(dim=-1)


def known_films(films: Collection[str], dataset: Dataset, cached: CachedFilms, asked: Collection[str]) -> int:
    """How many of the films the model has learnt from or was chosen on, whatever they are called now."""
    learnt, contents = set(films), zip(dataset.pictured, cached.contents, strict=True)
    return sum(film.id in asked and fingerprint(content) in learnt for film, content in contents)


def _has_boxes(dataset: Dataset, film: FilmRecord, split: str) -> bool:
    return film.split == split and film.id in dataset.boxes_by_film and bool(boxes_on(dataset, film))
