"""Drawn chests as a prepared data set: the one source whose films are made here, inside the data set's folder."""

import csv
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source, SplitRule, split_films
from medgrape.errors import UserError, nearest
from medgrape.files import whole_folder
from medgrape.geometry import FilmSize
from medgrape.phantoms.anatomy import Exam
from medgrape.phantoms.cohort import PROFILES, Shortcut, plan
from medgrape.phantoms.film import PhantomFilm, draw
from medgrape.plugins import register
from medgrape.progress import Track, quietly

_DRAWN_COLUMNS = ("film", "kind", "name", "concept", "x1", "y1", "x2", "y2")
_VOCABULARIES = {"tb": "tbx11k", "nih": "nih"}


@dataclass(frozen=True)
class PhantomOptions:
    """Options of a drawn data set."""

    profile: str = "tb"
    films: int = 1200
    size: int = 224
    seed: int = 0
    shortcut: Shortcut | None = None
    dicom: bool = False
    masks: bool = False  # also write a mask of each lesion, beside the films

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise UserError(f"There is no profile {self.profile!r}{nearest(self.profile, PROFILES)}.")
        if self.seed < 0:
            raise UserError("The seed of a drawing is 0 or more.")
        if self.films < 1 or not 64 <= self.size <= 2048:
            raise UserError("Phantoms take at least 1 film and a size from 64 to 2048 pixels.")

    def __str__(self) -> str:
        text = f"drawn with profile {self.profile}, seed {self.seed}, {self.size} x {self.size} pixels"
        return text if self.shortcut is None else f"{text}, {self.shortcut}"


@dataclass(frozen=True)
class DrawnFilm:
    """One film as the data set describes it."""

    record: FilmRecord
    boxes: list[DrawnBox]
    rows: list[tuple[object, ...]]  # rows of ``drawn.csv``: all lesions and devices, also findings that are no concepts


@register("source", "phantom")
def draw_dataset(
    options: PhantomOptions, out: Path, rule: SplitRule, *, workers: int = 1, track: Track = quietly
) -> Dataset:
    """Draw the films and write the data set; it appears complete in ``out`` or not at all."""
    exams = plan(options.profile, options.films, options.seed, options.shortcut)
    records, boxes, rows = list[FilmRecord](), list[DrawnBox](), list[tuple[object, ...]]()
    with whole_folder(out) as folder:
        (folder / "films").mkdir()
        if options.masks:
            (folder / "masks").mkdir()
        with _mapped(partial(_draw_and_write, folder=folder, options=options), exams, workers) as films:
            for drawn in track(films, f"drawing {options.films:,} films", options.films):
                records.append(drawn.record)
                boxes += drawn.boxes
                rows += drawn.rows
        with (folder / "drawn.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([_DRAWN_COLUMNS, *rows])
        dataset = Dataset(
            name=f"phantom {options.profile}",
            classes=PROFILES[options.profile].classes,
            concepts=ConceptSet.built_in(_VOCABULARIES[options.profile]),
            root=folder,
            films=split_films(records, rule),
            boxes=tuple(boxes),
            source=Source("phantom", "", {}, (str(options), str(rule))),
        )
        dataset.save(folder)
    return Dataset.load(out)


@contextmanager
def _mapped(work: "partial[DrawnFilm]", exams: Iterable[Exam], workers: int) -> Iterator[Iterable[DrawnFilm]]:
    """The results for all exams, in order, computed by one process or several."""
    if workers == 1:
        yield map(work, exams)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), cv2.setNumThreads, (1,)) as pool:
        yield pool.map(work, exams, chunksize=16)


def _draw_and_write(exam: Exam, folder: Path, options: PhantomOptions) -> DrawnFilm:
    film = draw(exam, options.size)
    path = f"films/{exam.film_id}.{'dcm' if options.dicom else 'png'}"
    _write_film(folder / path, film, options)
    record = FilmRecord(
        exam.film_id, path, exam.class_name, exam.patient_id, FilmSize(options.size, options.size),
        {name: name in exam.concepts for name in PROFILES[options.profile].concepts},
        "train", exam.sex, exam.age, exam.view,
    )  # fmt: skip
    boxes = [DrawnBox(exam.film_id, lesion.concept, lesion.box) for lesion in film.lesions if lesion.concept]
    drawn = [("finding", lesion.finding, lesion.concept or "", lesion.box) for lesion in film.lesions]
    drawn += [("device", device.name, "", device.box) for device in film.devices]
    rows: list[tuple[object, ...]] = [
        (exam.film_id, kind, name, concept, *(f"{edge:g}" for edge in box.corners))
        for kind, name, concept, box in drawn
    ]
    return DrawnFilm(record, boxes, rows)


def _write_film(path: Path, film: PhantomFilm, options: PhantomOptions) -> None:
    exam = film.exam
    if options.dicom:
        from medgrape.films.dicom.writer import Person, write_dicom  # pydicom is an extra, and slow to import

        person = Person(exam.patient_id, exam.sex, exam.age)
        write_dicom(path, film.pixels, person, exam.film_id, exam.view)
    else:
        Image.fromarray(film.pixels).save(path, compress_level=3)
    if options.masks:
        for number, lesion in enumerate(film.lesions):
            name = f"{exam.film_id}_{number}_{lesion.concept or lesion.finding}.png"
            Image.fromarray(lesion.mask.astype(np.uint8) * 255).save(path.parent.parent / "masks" / name)
