"""Measurements of a model inside the boxes of a data set, on which the safety check is calibrated and evaluated."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.cache import CachedFilms, fingerprint
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord
from medgrape.geometry import Box, BoxOutsideError, PatchGrid
from medgrape.model.evidence import disagreement_maps, mean_maps
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run
from medgrape.safety.check import inside

BATCH = 32


@dataclass(frozen=True)
class MeasuredBox:
    """A box of a data set, with the mean of every concept's maps inside it."""

    film: FilmRecord
    concept: str  # the concept that the box was drawn for
    box: Box
    means: Float[Tensor, " k"]  # means of ``mu``, in the order of the run's concepts
    variances: Float[Tensor, " k"]  # means of ``U``, likewise

    @property
    def patient(self) -> str:
        """The patient of the film; a film without one counts as a patient of its own."""
        return self.film.patient or self.film.id


@torch.no_grad()
def measure_boxes(
    run: Run, dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly, *, highest: bool = False
) -> tuple[MeasuredBox, ...]:
    """Measure every box of a split; ``highest`` takes the maximum of ``mu`` over a box instead of its mean."""
    measured: list[MeasuredBox] = []
    for films, greys in boxed_films(dataset, cached, split, track):
        patches, prototypes = run.model.patches(greys), run.model.atlas.in_use
        maps = zip(films, mean_maps(patches, prototypes), disagreement_maps(patches, prototypes), strict=True)
        for film, mean, disagreement in maps:
            for drawn in boxes_on(dataset, film):
                means = within(mean, film, drawn.box, highest=highest)
                variances = within(disagreement, film, drawn.box)
                measured.append(MeasuredBox(film, drawn.concept, drawn.box, means, variances))
    return tuple(measured)


def boxed_films(
    dataset: Dataset, cached: CachedFilms, split: str, track: Track = quietly
) -> Iterator[tuple[Sequence[FilmRecord], Float[Tensor, "b 1 side side"]]]:
    """Yield the films of a split that have boxes, in batches, with their pixels as the model reads them."""
    films = dataset.pictured
    wanted = [place for place in cached.readable() if films[place].split == split and boxes_on(dataset, films[place])]
    label = f"looking into the boxes of {len(wanted):,} {split} films"
    for batch, greys in cached.batches(wanted, BATCH, label, track):
        yield [films[place] for place in batch], torch.from_numpy(greys)


def boxes_on(dataset: Dataset, film: FilmRecord) -> list[DrawnBox]:
    """Return the boxes of a film, without those outside it, which ``medgrape data check`` reports."""
    return [drawn for drawn in dataset.boxes_by_film.get(film.id, ()) if drawn.box.clipped(film.size) is not None]


def within(maps: Float[Tensor, "k h w"], film: FilmRecord, box: Box, *, highest: bool = False) -> Float[Tensor, " k"]:
    """Return the mean of each map over a box of a film, or with ``highest`` the maximum over the patches it touches."""
    grid = PatchGrid(film.size, maps.shape[-2], maps.shape[-1])
    if highest:
        return maps[:, torch.from_numpy(grid.overlap(box)) > 0].amax(dim=-1)
    try:
        return inside(maps, grid, box)
    except BoxOutsideError as error:
        raise BoxOutsideError(f"Film {film.id!r}, in boxes.csv: {error}") from None


def known_films(learnt_from: Collection[str], dataset: Dataset, cached: CachedFilms, films: Collection[str]) -> int:
    """Count the films that the model was trained or selected on, recognised by their content."""
    fingerprints, contents = set(learnt_from), zip(dataset.pictured, cached.contents, strict=True)
    return sum(film.id in films and fingerprint(content) in fingerprints for film, content in contents)
