"""The evaluation of one model on one set of films, as JSON and as one HTML page."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from medgrape.evaluation.classification import Calibration, Classification, Detection, calibration, classify, detect
from medgrape.evaluation.dispersion import Dispersion, dispersion
from medgrape.evaluation.localisation import Localisation, localise
from medgrape.evaluation.page import report_page
from medgrape.evaluation.readings import EvaluationError, Readings, check_readings
from medgrape.evaluation.safety_check import SafetyCheckResults
from medgrape.evaluation.statistics import count_patients
from medgrape.evaluation.summary import cautions, film_warnings, headline
from medgrape.files import plain, write_json, write_text

NOTICE = "Research software, not a medical device"
Picture = UInt8[np.ndarray, "side side"]


@dataclass(frozen=True)
class FilmCounts:
    """Numbers of films and patients behind the figures."""

    read: int
    refused: int
    patients: int
    with_boxes: int


@dataclass(frozen=True)
class Evaluation:
    """All figures, each with its trivial baseline."""

    run: str
    data_set: str
    split: str
    films: FilmCounts
    refused: Mapping[str, str]  # film id to the reason why it could not be read
    facts: Mapping[str, Any]  # about the model: versions, checksums, settings; nested plain data
    data_facts: Mapping[str, Any]
    known_films: int  # number of these films that the model was trained or chosen on
    classification: Classification
    calibration: Calibration
    detection: Detection
    localisation: Localisation
    dispersion: Dispersion
    interaction: SafetyCheckResults | None  # None if no film that was read has a box

    @property
    def headline(self) -> tuple[str, ...]:
        """The main results as sentences, each with the result of the trivial baseline."""
        return headline(self.classification, self.localisation, self.interaction)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the figures."""
        return (
            *film_warnings(self.films.refused, self.known_films, self.films.read),
            *cautions(self.split, self.classification, self.localisation, self.dispersion, self.interaction),
            *self.classification.warnings,
            *self.detection.warnings,
            *self.localisation.warnings,
            *(() if self.interaction is None else self.interaction.warnings),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data; undefined figures are null, never NaN."""
        payload = {"headline": self.headline, "notice": NOTICE, "warnings": self.warnings} | asdict(self)
        return {name: plain(value) for name, value in payload.items()}


@dataclass(frozen=True)
class ReportFiles:
    """Paths of a report."""

    json: Path
    html: Path


def evaluate_readings(
    readings: Readings,
    prototypes: Float[Tensor, "k m d"] | None,
    facts: Mapping[str, Any],
    *,
    run: str,
    refused: Mapping[str, str] | None = None,
    known_films: int = 0,
    interaction: SafetyCheckResults | None = None,
    seed: int = 0,
) -> Evaluation:
    """Compute all figures from a model's readings.

    ``refused`` maps the films that could not be read to the reason. ``interaction`` are the results of the model's
    safety check, which cannot be computed from readings. A baseline has neither these nor ``prototypes``.
    """
    check_readings(readings)
    dataset = readings.dataset
    if prototypes is not None and len(prototypes) != len(dataset.concepts):
        raise EvaluationError(
            f"The model has prototypes of {len(prototypes)} concepts, the data set {len(dataset.concepts)}; "
            "evaluate a model on the concepts it knows."
        )
    localisation = localise(readings, seed=seed)
    return Evaluation(
        run=run,
        data_set=dataset.name,
        split=splits_of(readings),
        films=FilmCounts(
            read=len(readings.films),
            refused=len(refused or {}),
            patients=count_patients(readings.films),
            with_boxes=len({pair.film for pair in localisation.pairs}),
        ),
        refused=dict(refused or {}),
        facts=dict(facts),
        data_facts={
            "name": dataset.name,
            "prepared from": dataset.source.kind,
            "training films": len(dataset.in_split("train")),
            "SHA-256 of label files": dict(dataset.source.checksums),
            "notes": list(dataset.source.notes),
        },
        known_films=known_films,
        classification=classify(readings, seed=seed),
        calibration=calibration(readings),
        detection=detect(readings),
        localisation=localisation,
        dispersion=Dispersion.of_none(len(dataset.concepts)) if prototypes is None else dispersion(prototypes),
        interaction=interaction,
    )


def splits_of(readings: Readings) -> str:
    """Return the names of the splits that the films belong to."""
    return " and ".join(sorted({film.split for film in readings.films}))


def write_report(
    evaluation: Evaluation, readings: Readings, folder: Path, *, pictures: Mapping[str, Picture] | None = None
) -> ReportFiles:
    """Write ``report.json`` and ``report.html`` into ``folder``.

    ``pictures`` are the films as the model sees them, by film id; ``example_films`` returns the ids that are needed.
    Without them the page has no examples.
    """
    payload = evaluation.to_json()
    html = report_page(payload, evaluation.localisation, readings, pictures or {})
    return write_files(folder, "report", payload, html)


def write_files(folder: Path, name: str, payload: dict[str, Any], html: str) -> ReportFiles:
    """Write a report as JSON and as HTML."""
    files = ReportFiles(folder / f"{name}.json", folder / f"{name}.html")
    write_json(files.json, payload, indent=1, ensure_ascii=False, end="")
    write_text(files.html, html)
    return files
