"""What a run keeps of the films it was trained on: usual scores, small pictures of the nearest films, and counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import cv2
import numpy as np
import torch
from jaxtyping import Float

from medgrape.model.evidence import mean_maps
from medgrape.progress import Track
from medgrape.runs.checkpoint import Run, UsualScores
from medgrape.runs.exemplars import ExemplarFilms
from medgrape.training.assessment import ValidationFilms
from medgrape.training.films import TrainingFilms, in_order
from medgrape.training.scores import Scores

THUMBNAIL = 112
_SAMPLE, _BATCH = 64, 16
"""Films with and without a concept that its usual peaks are measured on again."""


def usual_scores(found: Scores, films: TrainingFilms) -> UsualScores:
    """Medians over the training films with and without each concept; a concept that all or none show borrows."""
    learnt = films.positions("train")
    labels = films.labels[learnt].numpy()
    scores, peaks = found.scores[0][learnt], found.peaks[learnt]
    absent, low, high = [], [], []
    for concept in range(labels.shape[1]):
        without, shown = labels[:, concept] == 0, labels[:, concept] == 1
        absent.append(np.median(scores[without if without.any() else slice(None), concept], axis=0))
        low.append(_median(peaks[:, concept], without))
        high.append(_median(peaks[:, concept], shown))
    return UsualScores(
        torch.from_numpy(np.stack(absent)).float(), torch.tensor(low).float(), torch.tensor(high).float()
    )


def _median(peaks: Float[np.ndarray, " n"], chosen: np.ndarray) -> float:
    return float(np.median(peaks[chosen] if chosen.any() else peaks))


def peaks_again(run: Run, films: TrainingFilms, concepts: Sequence[str], track: Track) -> UsualScores:
    """The usual scores with new peaks for concepts whose prototypes are others now: a sample, so that it is quick."""
    low, high = run.usual.absent_peak.clone(), run.usual.present_peak.clone()
    for name in concepts:
        known = films.labels[films.positions("train"), films.dataset.concepts.index(name)]
        learnt, row = np.array(films.positions("train")), run.concepts.index(name)
        for value, peaks in ((0, low), (1, high)):
            chosen = _spread(learnt[(known == value).numpy()].tolist())
            if chosen:
                peaks[row] = float(np.median(_peaks(run, films, chosen, row, track)))
    return replace(run.usual, absent_peak=low, present_peak=high)


def _spread(positions: list[int]) -> list[int]:
    return positions[:: max(len(positions) // _SAMPLE, 1)][:_SAMPLE]


@torch.no_grad()
def _peaks(run: Run, films: TrainingFilms, positions: list[int], row: int, track: Track) -> Float[np.ndarray, " n"]:
    own, batches = [run.model.atlas.in_use[row]], list(in_order(positions, _BATCH))
    found = [
        mean_maps(run.model.patches(films.pixels(batch)), own).amax(dim=(-2, -1))[:, 0].numpy()
        for batch in track(batches, f"usual peaks of {run.concepts.names[row]}", len(batches))
    ]
    return np.concatenate(found)


def exemplar_films(found: Scores, films: TrainingFilms, grid: tuple[int, int], *, show: bool) -> ExemplarFilms:
    """The nearest film of each prototype, each picture once; none at all where films are withheld."""
    nearest = found.nearest_films if show else np.full_like(found.nearest_films, -1)
    shown = sorted(set(nearest.flatten().tolist()) - {-1})
    place = {film: number for number, film in enumerate(shown)} | {-1: -1}
    pictures = [
        cv2.resize(films.cached[films.places[film]], (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
        for film in shown
    ]
    return ExemplarFilms(
        grid,
        tuple(films.records[film].id for film in shown),
        np.array(pictures, dtype=np.uint8).reshape(-1, THUMBNAIL, THUMBNAIL),
        np.vectorize(place.__getitem__, otypes=[np.int64])(nearest),
        np.array(found.nearest_patches, dtype=np.int64),
        np.array(found.nearest_similarity, dtype=np.float32),
    )


def data_facts(films: TrainingFilms) -> dict[str, Any]:
    """What was learnt from and chosen by, in numbers, and what the trivial answer gets where it was chosen."""
    validation = ValidationFilms.of(films)
    return {
        "source": films.dataset.source.kind,
        "splits": {split: _counts(films, split) for split in ("train", "val")},
        "trivial": {"answer": validation.trivial_answer, **asdict(validation.trivial)},
    }


def _counts(films: TrainingFilms, split: str) -> dict[str, Any]:
    positions = films.positions(split)
    records, shown = [films.records[film] for film in positions], (films.labels[positions] == 1).sum(dim=0).tolist()
    classes = Counter(film.class_name for film in records)
    return {
        "films": len(records),
        "patients": len({film.patient for film in records}),
        "with_boxes": sum(film.id in films.dataset.boxes_by_film for film in records),
        "classes": {name: classes[name] for name in films.dataset.classes},
        "concepts": dict(zip(films.dataset.concepts.names, shown, strict=True)),
        "sex": dict(sorted(Counter(film.sex or "not known" for film in records).items())),
    }
