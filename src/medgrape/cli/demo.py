"""``medgrape demo``: draw films, train a model, evaluate it, and open a reading room with it."""

import importlib.util
import os
import tempfile
import threading
import time
import urllib.request
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from PIL import Image
from typer import Option

from medgrape.cli.console import note, track, watch
from medgrape.cli.data import run_check
from medgrape.cli.room import import_server
from medgrape.cli.serve import announce
from medgrape.config import MAX_SEED, RECIPES, Config, load_config
from medgrape.datasets.dataset import Dataset, FilmRecord, SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.errors import UserError
from medgrape.geometry import Box

if TYPE_CHECKING:
    from medgrape.reader import Reader

FILMS, QUICK_FILMS, FILMS_IN_ROOM = 1600, 160, 12
CONFIG = RECIPES / "demo.toml"
_FILMS_SEARCHED = 40  # for a box that the model doubts
_START_TIMEOUT = 60.0


def demo(
    out: Annotated[Path, Option(help="Folder for all output.")] = Path("demo"),
    seed: Annotated[int, Option(min=0, max=MAX_SEED, help="Random seed of the films and the training.")] = 0,
    quick: Annotated[bool, Option("--quick", help="Smoke test of a minute: few films, a poor model.")] = False,
    serve: Annotated[bool, Option("--serve/--no-serve", help="At the end, open the reading room in a browser.")] = True,
    port: Annotated[int, Option(help="Port of the reading room; 0: any free one.")] = 0,
) -> None:
    """Try everything on drawn films: train a model, evaluate and audit it, read a film, open the reading room.

    Example: medgrape demo --no-serve
    """
    if serve:
        check_installed()
    name, films, minutes = ("tb-quick", QUICK_FILMS, "one minute") if quick else ("tb", FILMS, "three minutes")
    room = ", opens the reading room" if serve else ""
    note(f"Draws {films:,} chest films, trains a model on them, evaluates and audits it{room}: {minutes} on two cores.")
    data = _draw_films(out / f"{name}-films-seed{seed}", films, seed)
    config = _settings(seed, quick=quick)
    run_check(data, config)
    reader = _train_and_evaluate(config, data, out / f"{name}-model-seed{seed}")
    note("These films are drawn; they show no real patient. Research software, not a medical device.")
    if serve:
        open_room(reader, data, out / f"{name}-room-seed{seed}", port=port)


def check_installed() -> None:
    """Raise an error, before any work, if packages that the room needs are missing."""
    import_server()
    if importlib.util.find_spec("pydicom") is None:
        raise UserError("The demo's films are DICOM files: pip install 'medgrape[dicom]', or add --no-serve.")


def _draw_films(folder: Path, films: int, seed: int) -> Path:
    if (folder / "dataset.toml").is_file():
        note(f"{folder} already exists and is used as it is.")
        Dataset.load(folder)
    else:
        rule = SplitRule(test=0.2, seed=seed)
        draw_dataset(PhantomOptions(films=films, seed=seed), folder, rule, workers=os.cpu_count() or 1, track=track)
    return folder


def _settings(seed: int, *, quick: bool) -> Config:
    config = load_config(CONFIG).overridden(seed=seed)
    if not quick:
        return config
    stages = config.stages
    short = {"concepts": stages.concepts.overridden(epochs=2, views=1), "head": stages.head.overridden(views=1)}
    return config.model_copy(update={"stages": stages.model_copy(update=short)})


def _train_and_evaluate(config: Config, data: Path, run: Path) -> "Reader":
    """Train, evaluate, audit, and write the evidence of one test film with a finding."""
    from medgrape.cli.evaluate import print_evaluation
    from medgrape.cli.train import print_training
    from medgrape.evaluation.audit.audit import audit_run
    from medgrape.evaluation.audit.groups import attributes
    from medgrape.evaluation.evaluate import evaluate_run
    from medgrape.reader import load
    from medgrape.runs.manifest import audit_folder, report_folder
    from medgrape.training.run import TrainingJob, train

    train(TrainingJob(config, data, run), track=track, watch=watch)
    reader = load(run)
    print_training(reader.loaded.run.metrics, run, as_json=False)
    evaluation, files = evaluate_run(reader.loaded, data, report_folder(run, "test"), track=track)
    print_evaluation(evaluation, files)
    _, audit = audit_run(reader.loaded, data, audit_folder(run, "test"), attributes("sex,age,view"), track=track)
    note(f"audit: {audit.html}")
    dataset = Dataset.load(data)
    film = next(film for film in dataset.in_split("test") if film.id in dataset.boxes_by_film)
    evidence = run.with_name(f"{run.name}-evidence.png")
    reader.open(dataset.film_path(film)).explain().save(evidence)
    note(f"evidence of film {film.id}: {evidence}")
    return reader


@dataclass(frozen=True)
class Suggestion:
    """A film, and a box with a wrong concept that the safety check doubts, for the visitor to try."""

    film: FilmRecord
    concept: str
    box: Box


def open_room(reader: "Reader", data: Path, room: Path, *, port: int) -> None:
    """Serve a room with some test films until Ctrl-C."""
    from medgrape.server import process
    from medgrape.server.films import add_films_before_start
    from medgrape.server.room import RoomFolder
    from medgrape.server.settings import ServerSettings

    dataset = Dataset.load(data)
    suggestion = find_suggestion(reader, dataset)
    ready = process.prepare([reader.loaded.folder], RoomFolder(room), ServerSettings(port=port, data=str(data)))
    with tempfile.TemporaryDirectory(prefix="medgrape-demo-") as folder:
        paths = [write_as_dicom(film, dataset, Path(folder)) for film in films_for_room(dataset, suggestion)]
        ids = add_films_before_start(ready.folder, ready.settings, paths, login=ready.login, track=track)
    announce(ready)
    address = f"{ready.address}/{page_address(ids[-1], suggestion)}"
    note(f"Open {address}")
    threading.Thread(target=_open_browser, args=(ready.address, address), daemon=True).start()
    process.run(ready)


def find_suggestion(reader: "Reader", dataset: Dataset) -> Suggestion | None:
    """Return the first box of a test film that raises a warning if it is claimed to show another concept."""
    films = [film for film in dataset.in_split("test") if film.id in dataset.boxes_by_film]
    for film in films[:_FILMS_SEARCHED]:
        study = reader.open(dataset.film_path(film))
        for drawn in dataset.boxes_by_film[film.id]:
            for claimed in reader.concepts.names:
                check = study.check(drawn.box, claimed)
                if claimed != drawn.concept and check.mismatch and check.dominant == drawn.concept:
                    return Suggestion(film, claimed, drawn.box)
    return None


def films_for_room(dataset: Dataset, suggestion: Suggestion | None) -> list[FilmRecord]:
    """Return some test films; the one to open first comes last, which puts it on top of the list."""
    films = list(dataset.in_split("test"))
    first = films[0] if suggestion is None else suggestion.film
    return [*[film for film in films if film.id != first.id][: FILMS_IN_ROOM - 1], first]


def write_as_dicom(film: FilmRecord, dataset: Dataset, folder: Path) -> Path:
    """Write the film as a DICOM file whose header states view, sex, age and pixel spacing."""
    from medgrape.films.dicom.writer import Person, write_dicom

    path = folder / f"{film.id}.dcm"
    pixels = np.asarray(Image.open(dataset.film_path(film)).convert("L"))
    write_dicom(path, pixels, Person(film.patient, film.sex, film.age or 0), film.id, film.view)
    return path


def page_address(film: str, suggestion: Suggestion | None) -> str:
    """Return the page to open, relative to the server."""
    if suggestion is None:
        return f"#/films/{film}"
    corners = ",".join(f"{edge:g}" for edge in suggestion.box.corners)
    return f"#/try/{film}/{suggestion.concept}/{corners}"


def _open_browser(server: str, address: str) -> None:
    """Open the page as soon as the server answers."""
    ends_at = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < ends_at:
        try:
            with urllib.request.urlopen(f"{server}/api/v1/ready", timeout=5):  # noqa: S310 (our own server)
                break
        except OSError:
            time.sleep(0.2)
    try:
        webbrowser.get().open(address)
    except webbrowser.Error:
        note("No browser was found; open the address above in one.")
