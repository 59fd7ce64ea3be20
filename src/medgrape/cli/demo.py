"""``medgrape demo``: everything there is, on drawn films, with one command."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, track, watch
from medgrape.cli.data import run_check
from medgrape.cli.demo_room import check_parts, open_room
from medgrape.config import MAX_SEED, Config, load_config
from medgrape.data.dataset import Dataset
from medgrape.data.sources.phantom import PhantomOrder, draw_dataset
from medgrape.data.splits import SplitRule

if TYPE_CHECKING:  # torch is slow to import
    from medgrape.feedback.reader import Reader

FILMS, QUICK_FILMS = 1600, 160
CONFIG = Path(__file__).resolve().parents[1] / "configs" / "demo.toml"


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
    from medgrape.evaluation.audit import audit_folder, audit_run
    from medgrape.evaluation.reading import evaluate_run, report_folder
    from medgrape.evaluation.subgroups import attributes
    from medgrape.feedback.reader import load
    from medgrape.training.run import Order, train

    train(Order(config, data, run), track=track, watch=watch)
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
