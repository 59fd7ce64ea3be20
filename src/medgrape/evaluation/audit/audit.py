"""Audit of a run: all figures by group of patients, with the gaps to all other films."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medgrape.baselines.methods import BaselineRun
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.audit.group_figures import AuditFigures, compute_figures
from medgrape.evaluation.audit.groups import By, divisions
from medgrape.evaluation.audit.measures import CheckAlarms, FaithfulnessAreas, audit_statistics
from medgrape.evaluation.audit.page import audit_page
from medgrape.evaluation.audit.resampling import FEWEST
from medgrape.evaluation.audit.summary import cautions, flagged_gaps, headline
from medgrape.evaluation.evaluate import Loaded, SplitReadings, read_split
from medgrape.evaluation.faithfulness import BATCH, answer_of, faithfulness, random_order, saliency_of
from medgrape.evaluation.readings import Readings, check_readings
from medgrape.evaluation.report import NOTICE, ReportFiles, splits_of, write_files
from medgrape.evaluation.summary import film_warnings
from medgrape.files import plain
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run, SafetyRule
from medgrape.runs.manifest import version_of
from medgrape.safety.boxes import known_films, measure_boxes
from medgrape.safety.claims import SimulatedClaims, alarms, majority_alarms, most_frequent_concept


@dataclass(frozen=True)
class AuditedFilms:
    """The run and the films of an audit."""

    run: str
    version: str  # of the run, thresholds included; empty if it has no folder
    data_set: str
    split: str
    refused: int  # films that could not be read
    known_films: int  # number of these films that the model was trained or chosen on


@dataclass(frozen=True)
class Audit(AuditFigures, AuditedFilms):
    """Every figure in every group, with its trivial baselines and the gap to all other films."""

    fewest_patients: int = FEWEST

    def to_json(self) -> dict[str, Any]:
        """Return plain data; figures that are undefined or rest on too few patients are null, never NaN."""
        payload = {"notice": NOTICE, "headline": self.headline, "warnings": self.warnings, "flagged": self.flagged}
        return {name: plain(value) for name, value in (payload | asdict(self)).items()}

    @property
    def headline(self) -> tuple[str, ...]:
        """The number of flagged gaps, beside the number expected by chance."""
        return headline(self.gaps, self.flagged_gaps, self.still_flagged_gaps)

    @property
    def flagged(self) -> tuple[str, ...]:
        """A sentence for each gap whose interval excludes zero; those that survive the correction come first."""
        return flagged_gaps(self.measures, self.tables)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the figures."""
        remark = ": a model may be good there in every group"
        films = film_warnings(self.refused, self.known_films, self.whole.films, remark)
        return *films, *cautions(self.measures, self.tables)


def audit_run(
    loaded: Loaded,
    data: Path,
    out: Path,
    by: By,
    *,
    split: str = "test",
    faithful: bool = False,
    track: Track = quietly,
) -> tuple[Audit, ReportFiles]:
    """Read the films of a split, compute all figures in every group, and write the audit.

    ``faithful`` adds insertion and deletion, for which every film is read about 115 times.
    """
    dataset, run = Dataset.load(data), loaded.run
    if dataset.in_split(split):
        divisions(dataset.in_split(split), by)  # raises before any film is read
    read = read_split(loaded, dataset, data, split, track)
    audit = audit_readings(
        read.readings,
        by,
        run=loaded.folder.name,
        version=version_of(loaded.folder),
        check_alarms=_check_alarms(run, dataset, read, split, track) if isinstance(run, Run) else None,
        areas=_faithfulness_areas(run, dataset, read, track) if faithful else None,
        refused=len(read.refused),
        known_films=known_films(run.learnt_from, dataset, read.films, {film.id for film in read.readings.films}),
        track=track,
    )
    return audit, write_audit(audit, out)


def audit_readings(
    readings: Readings,
    by: By,
    *,
    run: str,
    version: str = "",
    check_alarms: CheckAlarms | None = None,
    areas: FaithfulnessAreas | None = None,
    refused: int = 0,
    known_films: int = 0,
    seed: int = 0,
    track: Track = quietly,
) -> Audit:
    """Compute all figures of a model's readings in every group."""
    check_readings(readings)
    films = readings.films
    statistics = audit_statistics(readings, check_alarms, areas)
    figures = compute_figures(statistics, divisions(films, by), films, seed=seed, track=track)
    return Audit(
        **vars(figures),
        run=run,
        version=version,
        data_set=readings.dataset.name,
        split=splits_of(readings),
        refused=refused,
        known_films=known_films,
    )


def write_audit(audit: Audit, folder: Path) -> ReportFiles:
    """Write ``audit.json`` and ``audit.html`` into ``folder``."""
    payload = audit.to_json()
    return write_files(folder, "audit", payload, audit_page(payload))


def _check_alarms(run: Run, dataset: Dataset, read: SplitReadings, split: str, track: Track) -> CheckAlarms | None:
    """Apply the run's safety check to every box, and a check that always answers the commonest finding."""
    boxes = measure_boxes(run, dataset, read.films, split, track)
    if not boxes:
        return None
    claims, answer = SimulatedClaims.on(boxes, dataset), most_frequent_concept(dataset)
    own = alarms(boxes, run.concepts, dataset.concepts, SafetyRule.of(run))
    if answer is None:
        return CheckAlarms(claims, own, None)
    return CheckAlarms(claims, own, majority_alarms(answer, claims), f"always “{dataset.concepts[answer].title}”")


def _faithfulness_areas(
    run: Run | BaselineRun, dataset: Dataset, read: SplitReadings, track: Track
) -> FaithfulnessAreas:
    """Compute insertion and deletion of every film that was read, and the same in a random order."""
    position = {film.id: place for place, film in enumerate(dataset.pictured)}
    places = [position[film.id] for film in read.readings.films]
    columns: list[tuple[np.ndarray, ...]] = []
    batches = read.films.batches(places, BATCH, f"changing {len(places):,} films", track)
    for seed, (_, pixels) in enumerate(batches):
        films = torch.from_numpy(pixels)
        answer, saliency = answer_of(run.model), saliency_of(run.model, films)
        random = random_order(len(films), (saliency.shape[1], saliency.shape[2]), seed)
        own, trivial = faithfulness(answer, films, saliency), faithfulness(answer, films, random)
        columns.append((own.deletion, own.insertion, trivial.deletion, trivial.insertion))
    return FaithfulnessAreas(*(np.concatenate(column) for column in zip(*columns, strict=True)))
