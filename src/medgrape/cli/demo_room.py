"""The end of ``medgrape demo``: a reading room with films, opened in a browser with something to try."""

import threading
import time
import urllib.request
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medgrape.cli.console import note, track
from medgrape.data.dataset import Dataset
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

    film: Path
    concept: str
    box: Box


def open_room(reader: "Reader", data: Path, room: Path, *, port: int) -> None:
    """Serve the room until somebody presses Ctrl-C."""
    from medgrape.cli.serve import announce, server_process
    from medgrape.server.folder import RoomFolder
    from medgrape.server.settings import ServerSettings

    process = server_process()
    from medgrape.server.furnishing import furnish

    dataset = Dataset.load(data)
    suggestion = suggest(reader, dataset)
    ready = process.prepare([reader.loaded.folder], RoomFolder(room), ServerSettings(port=port, data=str(data)))
    shown = hung(dataset, suggestion)
    ids = furnish(ready, shown, track)
    announce(ready)
    address = f"{ready.address}/{page(ids[-1], suggestion)}"
    note(f"Open {address}")
    threading.Thread(target=_open_once_it_answers, args=(ready.address, address), daemon=True).start()
    process.run(ready)


def suggest(reader: "Reader", dataset: Dataset) -> Suggestion | None:
    """The first test film on which the model objects to another finding than the one that is there."""
    boxed = [film for film in dataset.in_split("test") if film.id in dataset.boxes_by_film]
    for film in boxed[:TRIED]:
        path = dataset.film_path(film)
        study = reader.open(path)
        for drawn in dataset.boxes_by_film[film.id]:
            for claimed in reader.concepts.names:
                check = study.check(drawn.box, claimed)
                if claimed != drawn.concept and check.mismatch and check.dominant == drawn.concept:
                    return Suggestion(path, claimed, drawn.box)
    return None


def hung(dataset: Dataset, suggestion: Suggestion | None) -> list[Path]:
    """Some test films; the one to begin with last, which puts it on top of the list."""
    films = [dataset.film_path(film) for film in dataset.in_split("test")]
    first = films[0] if suggestion is None else suggestion.film
    return [*[path for path in films if path != first][: FILMS - 1], first]


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
