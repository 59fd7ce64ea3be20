"""``medgrape train``: from a prepared data set to a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table, track, watch
from medgrape.cli.options import Json
from medgrape.cli.rank_zero import one_voice
from medgrape.config import MAX_SEED, Config, load_config
from medgrape.errors import UserError


def train(
    config: Annotated[Path, typer.Argument(help="Settings in TOML, for instance configs/demo.toml.")],
    data: Annotated[Path, typer.Option(help="A prepared data set.")],
    out: Annotated[Path, typer.Option(help="Folder for the run.")] = Path("runs/latest"),
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help="Instead of the settings' seed.")] = None,
    mlflow: Annotated[
        str | None, typer.Option(help="Also tell MLflow, at this address: http://host:5000 or sqlite:///mlflow.db.")
    ] = None,
    experiment: Annotated[str, typer.Option(help="MLflow's experiment.")] = "medgrape",
    mlflow_files: Annotated[
        bool, typer.Option("--mlflow-files", help="Send findings, figures and curves along; no weights and no films.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train all stages; what an earlier attempt finished is not done again.

    Example: medgrape train configs/demo.toml --data demo/data --out runs/demo
    """
    with one_voice() as speaks:
        settings = _settings(config, seed)

        from medgrape.baselines.methods import load_any  # torch is slow to import
        from medgrape.training.run import TrainingJob, resumable
        from medgrape.training.run import train as run_training
        from medgrape.training.training_log import Tracking

        tracking = None if mlflow is None else Tracking(mlflow, experiment, mlflow_files)
        order = TrainingJob(settings, data, out, tracking=tracking)
        if speaks and resumable(order) and not as_json:
            note(f"Going on with the training of {out}.")
        run_training(order, track=track, watch=watch)
        if speaks:
            report(load_any(out).run.metrics, out, as_json=as_json)


def _settings(config: Path, seed: int | None) -> Config:
    if not config.is_file():
        raise UserError(f"There are no settings at {config}; see configs/.")
    settings = load_config(config)
    return settings if seed is None else settings.overridden(seed=seed)


def report(metrics: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """What validation said of each stage."""
    if as_json:
        print_json({"run": str(out), **metrics})
        return
    rows = [
        (
            stage,
            f"{told['best_epoch']} of {told['epochs']}",
            told["figure"],
            f"{told['score']:.3f}",
            f"{told['loss']:.3f}",
        )
        for stage, told in metrics["validation"].items()
    ]
    table("Validation", ("stage", "epoch chosen", "figure", "score", "loss"), rows)
    for name in metrics["untrained_concepts"]:
        note(f"warning: no training film shows {name}; its prototypes have learnt nothing.")
    if "safety_not_calibrated" in metrics:
        told = metrics["safety_not_calibrated"]
        note(f"warning: the safety check is not calibrated; medgrape calibrate may do it on other terms. {told}")
    if metrics["films_refused"]:
        note(f"warning: {metrics['films_refused']} films could not be read; see medgrape data check.")
    note(f"{metrics['films']:,} films; text encoder: {metrics['text_encoder'] or 'none'} -> {out}")
