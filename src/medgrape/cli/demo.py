"""``medgrape demo``: everything there is, on drawn films, with one command."""

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
import typer
from PIL import Image

from medgrape.cli.console import note, track, watch
from medgrape.cli.data import run_check
from medgrape.cli.serve import announce, server_process
from medgrape.config import MAX_SEED, RECIPES, Config, load_config
from medgrape.datasets.dataset import Dataset, FilmRecord, SplitRule
from medgrape.datasets.sources.phantoms import PhantomOrder, draw_dataset
from medgrape.errors import UserError
from medgrape.geometry import Box

if TYPE_CHECKING:
    from medgrape.reader import Reader

FILMS_IN_ROOM = 12
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
    from medgrape.server.films import add_films_before_start
    from medgrape.server.room import RoomFolder
    from medgrape.server.settings import ServerSettings

    dataset = Dataset.load(data)
    suggestion = suggest(reader, dataset)
    ready = process.prepare([reader.loaded.folder], RoomFolder(room), ServerSettings(port=port, data=str(data)))
    with tempfile.TemporaryDirectory(prefix="medgrape-demo-") as folder:
        paths = [filed(film, dataset, Path(folder)) for film in hung(dataset, suggestion)]
        ids = add_films_before_start(ready.folder, ready.settings, paths, login=ready.login, track=track)
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
    return [*[film for film in films if film.id != first.id][: FILMS_IN_ROOM - 1], first]


def filed(film: FilmRecord, dataset: Dataset, folder: Path) -> Path:
    """The film as a hospital would send it, with a header that tells view, sex, age and millimetres."""
    from medgrape.films.dicom.writer import Person, write_dicom

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


FILMS, QUICK_FILMS = 1600, 160
CONFIG = RECIPES / "demo.toml"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything that the demo makes.")] = Path("demo"),
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Another seed draws other patients and trains another model.")
    ] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test of a minute: few films, a poor model.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Open the reading room in a browser at the end.")
    ] = True,
    port: Annotated[int, typer.Option(help="Port of the reading room; 0: any that is free.")] = 0,
) -> None:
    """Draw chest films, train a model on them, evaluate and audit it, read a film with it, open the reading room.

    Example: medgrape demo --no-serve
    """
    if serve:
        check_parts()
    name = "tb-quick" if quick else "tb"
    data = _films(out / f"{name}-films-seed{seed}", QUICK_FILMS if quick else FILMS, seed)
    config = _settings(seed, quick=quick)
    run_check(data, config)
    reader = _model(config, data, out / f"{name}-model-seed{seed}")
    note("These films are drawn; no patient was ever in front of them. Research software, not a medical device.")
    if serve:
        open_room(reader, data, out / f"{name}-room-seed{seed}", port=port)


def _films(folder: Path, films: int, seed: int) -> Path:
    if (folder / "dataset.toml").is_file():
        note(f"{folder} is there already and is used as it is.")
        Dataset.load(folder)
    else:
        rule = SplitRule(test=0.2, seed=seed)
        draw_dataset(PhantomOrder(films=films, seed=seed), folder, rule, workers=os.cpu_count() or 1, track=track)
    return folder


def _settings(seed: int, *, quick: bool) -> Config:
    config = load_config(CONFIG).overridden(seed=seed)
    if not quick:
        return config
    stages = config.stages
    brief = {"concepts": stages.concepts.overridden(epochs=2, views=1), "head": stages.head.overridden(views=1)}
    shorter = stages.model_copy(update=brief)
    return config.model_copy(update={"stages": shorter})


def _model(config: Config, data: Path, run: Path) -> "Reader":
    """Train, evaluate, audit, read one film of the test split that shows something."""
    from medgrape.cli.evaluate import print_evaluation
    from medgrape.cli.train import report as report_training
    from medgrape.evaluation.audit.audit import audit_run
    from medgrape.evaluation.audit.groups import attributes
    from medgrape.evaluation.evaluate import evaluate_run
    from medgrape.reader import load
    from medgrape.runs.manifest import audit_folder, report_folder
    from medgrape.training.run import TrainingJob, train

    train(TrainingJob(config, data, run), track=track, watch=watch)
    reader = load(run)
    report_training(reader.loaded.run.metrics, run, as_json=False)
    evaluation, files = evaluate_run(reader.loaded, data, report_folder(run, "test"), track=track)
    print_evaluation(evaluation, files)
    _, audit = audit_run(reader.loaded, data, audit_folder(run, "test"), attributes("sex,age,view"), track=track)
    note(f"audit: {audit.html}")
    dataset = Dataset.load(data)
    shown = next(film for film in dataset.in_split("test") if film.id in dataset.boxes_by_film)
    evidence = run.with_name(f"{run.name}-evidence.png")
    reader.open(dataset.film_path(shown)).explain().save(evidence)
    note(f"evidence of film {shown.id}: {evidence}")
    return reader
