"""The boxes of a prepared data set for other programs. Patients, sexes and ages stay behind."""

from pathlib import Path

from medgrape.data.dataset import Dataset
from medgrape.interchange.boxes import FilmOut, MarkOut, Marks, form_of


def export_boxes(data: Path, out: Path) -> Marks:
    """Write every film that has a file, and every box on these."""
    form_of(out)
    told = boxes_of(Dataset.load(data))
    told.write(out)
    return told


def boxes_of(dataset: Dataset) -> Marks:
    """What of a set goes into a file."""
    films = tuple(
        FilmOut(film.id, film.path, film.size, {"split": film.split, "class": film.class_name})
        for film in dataset.pictured
    )
    known = {film.id for film in films}
    marks = (MarkOut(drawn.film, "box", drawn.concept, drawn.box) for drawn in dataset.boxes if drawn.film in known)
    return Marks(dataset.name, dataset.concepts.names, films, tuple(marks))
