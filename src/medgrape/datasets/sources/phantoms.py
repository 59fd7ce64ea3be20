"""Drawn chests as a prepared data set: the one source whose films are made here, inside the data set's own folder."""

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
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source
from medgrape.datasets.splits import SplitRule, split_films
from medgrape.errors import UserError, nearest
from medgrape.files import whole_folder
from medgrape.geometry import Box, FilmSize
from medgrape.phantoms.anatomy import Sitting
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.devices import Shortcut
from medgrape.phantoms.film import PhantomFilm, draw
from medgrape.phantoms.profile import PROFILES
from medgrape.progress import Track, quietly

_DRAWN_COLUMNS = ("film", "kind", "name", "concept", "x1", "y1", "x2", "y2")
VOCABULARIES = {"tb": "tbx11k", "nih": "nih"}


@dataclass(frozen=True)
class PhantomOrder:
    """What to draw."""

    profile: str = "tb"
    films: int = 1200
    size: int = 224
    seed: int = 0
    shortcut: Shortcut | None = None
    dicom: bool = False
    masks: bool = False
    """Also write one mask for each lesion, beside the films."""

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise UserError(f"There is no profile {self.profile!r}{nearest(self.profile, PROFILES)}.")
        if self.seed < 0:
            raise UserError("The seed of a drawing is 0 or more.")
        if self.films < 1 or not 64 <= self.size <= 2048:
            raise UserError("Phantoms take at least 1 film and a size from 64 to 2048 pixels.")


def draw_dataset(
    order: PhantomOrder, out: Path, rule: SplitRule, *, workers: int = 1, track: Track = quietly
) -> Dataset:
    """Draw the films and write the data set; it appears whole in ``out`` or not at all."""
    sittings = plan(order.profile, order.films, order.seed, order.shortcut)
    records, boxes, rows = list[FilmRecord](), list[DrawnBox](), list[tuple[object, ...]]()
    with whole_folder(out) as folder:
        (folder / "films").mkdir()
        if order.masks:
            (folder / "masks").mkdir()
        with _drawn(partial(_draw_and_write, folder=folder, order=order), sittings, workers) as films:
            for drawn in track(films, f"drawing {order.films:,} films", order.films):
                records.append(drawn.record)
                boxes += drawn.boxes
                rows += drawn.rows
        with (folder / "drawn.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([_DRAWN_COLUMNS, *rows])
        source = Source("phantom", "", {}, (_story(order), str(rule)))
        profile = PROFILES[order.profile]
        concepts = ConceptSet.built_in(VOCABULARIES[order.profile])
        made = Dataset(
            f"phantom {order.profile}",
            profile.classes,
            concepts,
            folder,
            split_films(records, rule),
            tuple(boxes),
            source,
        )
        made.save(folder)
    return Dataset.load(out)


def _story(order: PhantomOrder) -> str:
    told = f"drawn with profile {order.profile}, seed {order.seed}, {order.size} x {order.size} pixels"
    return told if order.shortcut is None else f"{told}, {order.shortcut}"


@dataclass(frozen=True)
class Drawn:
    """One film as the data set describes it."""

    record: FilmRecord
    boxes: list[DrawnBox]
    rows: list[tuple[object, ...]]
    """Everything on the film that was drawn on purpose, devices and findings outside the concepts included."""


@contextmanager
def _drawn(work: "partial[Drawn]", sittings: Iterable[Sitting], workers: int) -> Iterator[Iterable[Drawn]]:
    """The work done for every sitting, in order, by one process or several."""
    if workers == 1:
        yield map(work, sittings)
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=cv2.setNumThreads, initargs=(1,)
    ) as pool:
        yield pool.map(work, sittings, chunksize=16)


def _draw_and_write(sitting: Sitting, folder: Path, order: PhantomOrder) -> Drawn:
    film = draw(sitting, order.size)
    path = f"films/{sitting.film_id}.{'dcm' if order.dicom else 'png'}"
    _write_film(folder / path, film, order)
    concepts = PROFILES[order.profile].concepts
    record = FilmRecord(
        sitting.film_id, path, sitting.class_name, sitting.patient_id, FilmSize(order.size, order.size),
        {name: name in sitting.concepts for name in concepts},
        "train", sitting.sex, sitting.age, sitting.view,
    )  # fmt: skip
    boxes = [DrawnBox(sitting.film_id, lesion.concept, lesion.box) for lesion in film.lesions if lesion.concept]
    rows = [_row(film, "finding", lesion.finding, lesion.concept or "", lesion.box) for lesion in film.lesions]
    rows += [_row(film, "device", device.name, "", device.box) for device in film.devices]
    return Drawn(record, boxes, rows)


def _row(film: PhantomFilm, kind: str, name: str, concept: str, box: Box) -> tuple[object, ...]:
    return film.sitting.film_id, kind, name, concept, *(f"{edge:g}" for edge in box.corners)


def _write_film(path: Path, film: PhantomFilm, order: PhantomOrder) -> None:
    if order.dicom:
        from medgrape.films.dicom.writer import Person, write_dicom

        person = Person(film.sitting.patient_id, film.sitting.sex, film.sitting.age)
        write_dicom(path, film.pixels, person, film.sitting.film_id, film.sitting.view)
    else:
        Image.fromarray(film.pixels).save(path, compress_level=3)
    if order.masks:
        for number, lesion in enumerate(film.lesions):
            name = f"{film.sitting.film_id}_{number}_{lesion.concept or lesion.finding}.png"
            Image.fromarray(lesion.mask.astype(np.uint8) * 255).save(path.parent.parent / "masks" / name)
