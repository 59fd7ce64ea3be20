"""Everything that was found about one model on one set of films, as plain data and as one page for people."""

import json
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
from medgrape.evaluation.readings import EvaluationError, Readings, check_readings
from medgrape.evaluation.safety_check import Interaction
from medgrape.evaluation.verdicts import cautions, headline
from medgrape.files import plain, whole_file

NOTICE = "Research software, not a medical device"
Picture = UInt8[np.ndarray, "side side"]


@dataclass(frozen=True)
class FilmCounts:
    """What the figures rest on."""

    read: int
    refused: int
    patients: int
    with_boxes: int


@dataclass(frozen=True)
class Evaluation:
    """All figures, each with its trivial baseline beside it."""

    run: str
    data_set: str
    split: str
    films: FilmCounts
    refused: Mapping[str, str]
    """Film to why it could not be read."""
    facts: Mapping[str, Any]
    """Of the model: versions, checksums, settings; plain data, nested as its maker likes."""
    data_facts: Mapping[str, Any]
    known_films: int
    """How many of the films the model has learnt from or was chosen on."""
    classification: Classification
    calibration: Calibration
    detection: Detection
    localisation: Localisation
    dispersion: Dispersion
    interaction: Interaction | None
    """None where no film that was read has a box."""

    @property
    def headline(self) -> tuple[str, ...]:
        """The result in plain sentences, each with what the trivial answer gets."""
        return headline(self.classification, self.localisation, self.interaction)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the figures."""
        told = (*self.classification.warnings, *self.detection.warnings, *self.localisation.warnings)
        told += () if self.interaction is None else self.interaction.warnings
        refused = f"Films that could not be read, and count nowhere: {self.films.refused:,}."
        known = (
            f"{self.known_films:,} of the {self.films.read:,} films were learnt from, or the model was chosen on them."
        )
        return (
            *((refused,) if self.films.refused else ()),
            *((known,) if self.known_films else ()),
            *cautions(self.split, self.classification, self.localisation, self.dispersion, self.interaction),
            *told,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; a figure that is not defined is null, never NaN."""
        told = {"headline": self.headline, "notice": NOTICE, "warnings": self.warnings}
        return {name: plain(value) for name, value in (told | asdict(self)).items()}


@dataclass(frozen=True)
class ReportFiles:
    """Where the report is."""

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
    interaction: Interaction | None = None,
    seed: int = 0,
) -> Evaluation:
    """All figures on what a model said; ``refused`` names the films that could not be read, and why.

    ``interaction`` is what the model's safety check was found to be worth, which readings alone do not tell; a method
    that is only compared with has none, and no ``prototypes`` either.
    """
    check_readings(readings)
    if prototypes is not None and len(prototypes) != len(readings.dataset.concepts):
        raise EvaluationError(
            f"The model has prototypes of {len(prototypes)} concepts, the data set {len(readings.dataset.concepts)}; "
            "evaluate a model on the concepts it knows."
        )
    localisation = localise(readings, seed=seed)
    return Evaluation(
        run=run,
        data_set=readings.dataset.name,
        split=" and ".join(sorted({film.split for film in readings.films})),
        films=FilmCounts(
            read=len(readings.films),
            refused=len(refused or {}),
            patients=len({film.patient or film.id for film in readings.films}),
            with_boxes=len({pair.film for pair in localisation.pairs}),
        ),
        refused=dict(refused or {}),
        facts=dict(facts),
        data_facts=_data_facts(readings),
        known_films=known_films,
        classification=classify(readings, seed=seed),
        calibration=calibration(readings),
        detection=detect(readings),
        localisation=localisation,
        dispersion=Dispersion.of_none(len(readings.dataset.concepts)) if prototypes is None else dispersion(prototypes),
        interaction=interaction,
    )


def write_report(
    evaluation: Evaluation, readings: Readings, folder: Path, *, pictures: Mapping[str, Picture] | None = None
) -> ReportFiles:
    """Write ``report.json`` and ``report.html`` into ``folder``.

    ``pictures`` are the films as the model sees them, by film id; ``example_films`` tells which are wanted. Without
    them the page has no examples.
    """
    from medgrape.evaluation.page import page  # drawing is not needed to count

    files = ReportFiles(folder / "report.json", folder / "report.html")
    told = evaluation.to_json()
    html = page(told, evaluation.localisation, readings, pictures or {})
    with whole_file(files.json) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=False, ensure_ascii=False), "utf-8")
    with whole_file(files.html) as draft:
        draft.write_text(html, "utf-8")
    return files


def _data_facts(readings: Readings) -> dict[str, Any]:
    source = readings.dataset.source
    return {
        "name": readings.dataset.name,
        "prepared from": source.kind,
        "training films": len(readings.dataset.in_split("train")),
        "SHA-256 of label files": dict(source.checksums),
        "notes": list(source.notes),
    }
