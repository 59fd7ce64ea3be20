"""``medgrape train``: train a model on a prepared data set."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from medgrape.cli.console import note, print_json, table, track, watch
from medgrape.cli.options import Json
from medgrape.cli.rank_zero import only_rank_zero_prints
from medgrape.config import MAX_SEED, load_config


def train(
    config: Annotated[Path, Argument(help="Settings file, or the name of a recipe: demo, tbx11k-real, ...")],
    data: Annotated[Path, Option(help="Folder of a prepared data set.")],
    out: Annotated[Path, Option(help="Folder for the run.")] = Path("runs/latest"),
    seed: Annotated[int | None, Option(min=0, max=MAX_SEED, help="Override the seed of the settings.")] = None,
    mlflow: Annotated[
        str | None, Option(help="Also log every epoch to this MLflow server, such as http://host:5000.")
    ] = None,
    experiment: Annotated[str, Option(help="Name of the MLflow experiment.")] = "medgrape",
    mlflow_files: Annotated[
        bool, Option("--mlflow-files", help="Also send concepts.json, metrics.json, log.jsonl and curves.png.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train all stages; an interrupted training continues if the command is repeated.

    Example: medgrape train demo --data demo/data --out runs/demo
    """
    with only_rank_zero_prints() as may_print:
        settings = load_config(config).overridden(seed=seed)

        from medgrape.baselines.methods import load_any  # torch is slow to import
        from medgrape.training.run import TrainingJob, resumable
        from medgrape.training.run import train as run_training
        from medgrape.training.training_log import Tracking

        tracking = None if mlflow is None else Tracking(mlflow, experiment, mlflow_files)
        job = TrainingJob(settings, data, out, tracking=tracking)
        if may_print and resumable(job) and not as_json:
            note(f"Continuing the training of {out}.")
        run_training(job, track=track, watch=watch)
        if may_print:
            print_training(load_any(out).run.metrics, out, as_json=as_json)


def print_training(metrics: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Print the validation figures of each stage, and warnings."""
    if as_json:
        print_json({"run": out, **metrics})
        return
    rows = [
        (stage, f"{result['best_epoch']} of {result['epochs']}", result["figure"], result["score"], result["loss"])
        for stage, result in metrics["validation"].items()
    ]
    table("Validation", ("stage", "epoch chosen", "figure", "score", "loss"), rows)
    for name in metrics["untrained_concepts"]:
        note(f"warning: no training film shows {name}; its prototypes have learnt nothing.")
    if "safety_not_calibrated" in metrics:
        reason = metrics["safety_not_calibrated"]
        note(f"warning: the safety check is not calibrated; medgrape calibrate has other options for it. {reason}")
    if metrics["films_refused"]:
        note(f"warning: {metrics['films_refused']} films could not be read; see medgrape data check.")
    note(f"{metrics['films']:,} films; text encoder: {metrics['text_encoder'] or 'none'} -> {out}")
