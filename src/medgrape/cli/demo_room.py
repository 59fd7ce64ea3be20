"""The end of ``medgrape demo``: a reading room with films, opened in a browser with something to try."""

import importlib.util
import tempfile
import threading
import time
import urllib.request
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from medgrape.cli.console import note, track
from medgrape.cli.serve import announce, server_process
from medgrape.data.dataset import Dataset, FilmRecord
from medgrape.errors import UserError
from medgrape.geometry import Box

if TYPE_CHECKING:  # torch is slow to import
    from medgrape.feedback.reader import Reader

FILMS = 12
TRIED = 40
"""Films that are looked at for something worth trying."""
PATIENCE = 60.0


@dataclass(frozen=True)
class Suggestion:
    """A film, and a box on it in which the model will not see what one is told to say."""

    film: FilmRecord
    concept: str
    box: Box


def check_parts() -> None:
    """Refuse before the work what the room at its end would lack."""
    server_process()
    if importlib.util.find_spec("pydicom") is None:
        raise UserError("The demo's films are DICOM files: pip install 'medgrape[dicom]', or say --no-serve.")


def open_room(reader: "Reader", data: Path, room: Path, *, port: int) -> None:
    """Serve the room until somebody presses Ctrl-C."""
    from medgrape.server import process
    from medgrape.server.folder import RoomFolder
    from medgrape.server.furnishing import furnish
    from medgrape.server.settings import ServerSettings

    dataset = Dataset.load(data)
    suggestion = suggest(reader, dataset)
    ready = process.prepare([reader.loaded.folder], RoomFolder(room), ServerSettings(port=port, data=str(data)))
    with tempfile.TemporaryDirectory(prefix="medgrape-demo-") as folder:
        ids = furnish(ready, [filed(film, dataset, Path(folder)) for film in hung(dataset, suggestion)], track)
    announce(ready)
    address = f"{ready.address}/{page(ids[-1], suggestion)}"
    note(f"Open {address}")
    threading.Thread(target=_open_once_it_answers, args=(ready.address, address), daemon=True).start()
    process.run(ready)


def suggest(reader: "Reader", dataset: Dataset) -> Suggestion | None:
    """The first test film on which the model objects to another finding than the one that is there."""
    boxed = [film for film in dataset.in_split("test") if film.id in dataset.boxes_by_film]
    for film in boxed[:TRIED]:
        study = reader.open(dataset.film_path(film))
        for drawn in dataset.boxes_by_film[film.id]:
            for claimed in reader.concepts.names:
                check = study.check(drawn.box, claimed)
                if claimed != drawn.concept and check.mismatch and check.dominant == drawn.concept:
                    return Suggestion(film, claimed, drawn.box)
    return None


def hung(dataset: Dataset, suggestion: Suggestion | None) -> list[FilmRecord]:
    """Some test films; the one to begin with last, which puts it on top of the list."""
    films = list(dataset.in_split("test"))
    first = films[0] if suggestion is None else suggestion.film
    return [*[film for film in films if film.id != first.id][: FILMS - 1], first]


def filed(film: FilmRecord, dataset: Dataset, folder: Path) -> Path:
    """The film as a hospital would send it, with a header that tells view, sex, age and millimetres."""
    from medgrape.data.dicom.writer import Person, write_dicom

    path = folder / f"{film.id}.dcm"
    pixels = np.asarray(Image.open(dataset.film_path(film)).convert("L"))
    write_dicom(path, pixels, Person(film.patient, film.sex, film.age or 0), film.id, film.view)
    return path


def page(film: str, suggestion: Suggestion | None) -> str:
    """Where the page begins."""
    if suggestion is None:
        return f"#/films/{film}"
    corners = ",".join(f"{edge:g}" for edge in suggestion.box.corners)
    return f"#/try/{film}/{suggestion.concept}/{corners}"


def _open_once_it_answers(server: str, address: str) -> None:
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        try:
            with urllib.request.urlopen(f"{server}/api/v1/ready", timeout=5):  # noqa: S310 (our own server)
                break
        except OSError:
            time.sleep(0.2)
    try:
        webbrowser.get().open(address)
    except webbrowser.Error:
        note("There is no browser here; open the address above with one.")
