"""The same figures for women and men, young and old, one view and another: where is the model worse, and surely so?"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medgrape.baselines.methods import BaselineRun
from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.audit.counting import AuditTable, GroupFigures, counted
from medgrape.evaluation.audit.groups import By, divisions
from medgrape.evaluation.audit.measures import Changed, Checked, figures_of
from medgrape.evaluation.audit.page import cautions, flagged_gaps, headline
from medgrape.evaluation.audit.sampling import FEWEST, Measure
from medgrape.evaluation.evaluate import Loaded, Read, read_split
from medgrape.evaluation.faithfulness import BATCH, answer_of, faithfulness, random_order, saliency_of
from medgrape.evaluation.readings import Readings, check_readings
from medgrape.evaluation.report import NOTICE
from medgrape.files import plain, whole_file
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import Run, SafetyRule
from medgrape.runs.manifest import version_of
from medgrape.safety.boxes import MeasuredBox, known_films, measure_boxes
from medgrape.safety.claims import SimulatedClaims, alarms, majority_alarms, most_frequent_concept


@dataclass(frozen=True)
class Audit:
    """Every figure for every group, with the blind answer, the rest of the films and the gap to them."""

    run: str
    version: str
    """Of the run, thresholds and all; empty where it lies nowhere."""
    data_set: str
    split: str
    refused: int
    """Films that could not be read."""
    known_films: int
    """How many of the films the model has learnt from or was chosen on."""
    measures: tuple[Measure, ...]
    whole: GroupFigures
    """All films."""
    tables: tuple[AuditTable, ...]
    gaps: int
    """How many were judged; where a table has two groups only, their gaps are one."""
    flagged_gaps: int
    """How many of them have an interval that excludes zero."""
    still_flagged_gaps: int
    """How many of those stand Holm's correction for all gaps."""
    rounds: int
    fewest_patients: int = FEWEST

    def to_json(self) -> dict[str, Any]:
        """Plain data; a figure that is not defined, or rests on too few patients, is null and never NaN."""
        facts = asdict(self)
        told = {"notice": NOTICE, "headline": self.headline, "warnings": self.warnings}
        return {name: plain(value) for name, value in (told | {"flagged": self.flagged} | facts).items()}

    @property
    def headline(self) -> tuple[str, ...]:
        """How many gaps there are, and how many would be there by luck alone."""
        return headline(self.gaps, self.flagged_gaps, self.still_flagged_gaps)

    @property
    def flagged(self) -> tuple[str, ...]:
        """Each gap whose interval excludes zero, as a sentence; those that stand the correction come first."""
        return flagged_gaps(self.measures, self.tables)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the figures."""
        told = []
        if self.refused:
            told.append(f"Films that could not be read, and count nowhere: {self.refused:,}.")
        if self.known_films:
            told.append(
                f"{self.known_films:,} of the {self.whole.films:,} films were learnt from, or the model was chosen on "
                "them: a model may be good there in every group."
            )
        return *told, *cautions(self.measures, self.tables)


@dataclass(frozen=True)
class AuditFiles:
    """Where the audit is."""

    json: Path
    html: Path


def audit_run(
    loaded: Loaded,
    data: Path,
    out: Path,
    by: By,
    *,
    split: str = "test",
    faithful: bool = False,
    track: Track = quietly,
) -> tuple[Audit, AuditFiles]:
    """Read the films of a split, count in every group, and write the audit.

    ``faithful`` adds insertion and deletion, for which every film is read some 115 times.
    """
    dataset, run = Dataset.load(data), loaded.run
    if dataset.in_split(split):
        divisions(dataset.in_split(split), by)  # what cannot be compared is refused before any film is read
    read = read_split(loaded, dataset, data, split, track)
    audit = audit_readings(
        read.readings,
        by,
        run=loaded.folder.name,
        version=version_of(loaded.folder),
        checked=_checked(run, dataset, measure_boxes(run, dataset, read.films, split, track))
        if isinstance(run, Run)
        else None,
        changed=_changed(run, dataset, read, track) if faithful else None,
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
    checked: Checked | None = None,
    changed: Changed | None = None,
    refused: int = 0,
    known_films: int = 0,
    seed: int = 0,
    track: Track = quietly,
) -> Audit:
    """All figures on what a model said, for every group.

    ``checked`` tells where its safety check warns, ``changed`` what it said of films of which parts were taken away.
    """
    check_readings(readings)
    counts = counted(
        figures_of(readings, checked, changed), divisions(readings.films, by), readings.films, seed=seed, track=track
    )
    return Audit(
        run=run,
        version=version,
        data_set=readings.dataset.name,
        split=" and ".join(sorted({film.split for film in readings.films})),
        refused=refused,
        known_films=known_films,
        measures=counts.measures,
        whole=counts.whole,
        tables=counts.tables,
        gaps=counts.gaps,
        flagged_gaps=counts.flagged,
        still_flagged_gaps=counts.still_flagged,
        rounds=counts.rounds,
    )


def write_audit(audit: Audit, folder: Path) -> AuditFiles:
    """Write ``audit.json`` and ``audit.html`` into ``folder``."""
    from medgrape.evaluation.audit.page import audit_page  # drawing is not needed to count

    files, told = AuditFiles(folder / "audit.json", folder / "audit.html"), audit.to_json()
    html = audit_page(told)
    with whole_file(files.json) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=False, ensure_ascii=False), "utf-8")
    with whole_file(files.html) as draft:
        draft.write_text(html, "utf-8")
    return files


def _checked(run: Run, dataset: Dataset, seen: Sequence[MeasuredBox]) -> Checked | None:
    """The run's own safety check on every box, beside one that always gives the commonest answer."""
    if not seen:
        return None
    claims, answer = SimulatedClaims.on(seen, dataset), most_frequent_concept(dataset)
    own = alarms(seen, run.concepts, dataset.concepts, SafetyRule.of(run))
    if answer is None:
        return Checked(claims, own, None)
    return Checked(claims, own, majority_alarms(answer, claims), f"always “{dataset.concepts[answer].title}”")


def _changed(run: Run | BaselineRun, dataset: Dataset, read: Read, track: Track) -> Changed:
    """Insertion and deletion on every film that was read; each has a random order of its own."""
    places = {film.id: place for place, film in enumerate(dataset.pictured)}
    chosen = [places[film.id] for film in read.readings.films]
    batches = [chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH)]
    label = f"changing {len(chosen):,} films"
    parts = [_areas(run, read.films, batch, seed) for seed, batch in enumerate(track(batches, label, len(batches)))]
    return Changed(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _areas(run: Run | BaselineRun, cached: CachedFilms, places: Sequence[int], seed: int) -> tuple[np.ndarray, ...]:
    """Deletion and insertion of a few films, then the same in a random order."""
    films = torch.from_numpy(np.stack([cached[place] for place in places])).unsqueeze(1).float() / 255.0
    answer, saliency = answer_of(run.model), saliency_of(run.model, films)
    blind = random_order(len(films), (saliency.shape[1], saliency.shape[2]), seed)
    own, lot = faithfulness(answer, films, saliency), faithfulness(answer, films, blind)
    return own.deletion, own.insertion, lot.deletion, lot.insertion
