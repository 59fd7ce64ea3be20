"""``medgrape data``: prepare a data set, and check one."""

from pathlib import Path
from typing import Annotated

import typer

from medgrape.cli.console import err, note, print_json, table, track
from medgrape.cli.options import ConfigFile, Json, Size, config_with
from medgrape.cli.prepare import app as prepare
from medgrape.config import Config
from medgrape.datasets.cache import cached_films
from medgrape.datasets.check import CheckReport, check
from medgrape.datasets.dataset import SPLITS, Dataset
from medgrape.datasets.figures import draw_figures
from medgrape.errors import UserError

EDGES_SHOWN = 15
app = typer.Typer(no_args_is_help=True, help="Prepare a data set, and check one.")
app.add_typer(prepare, name="prepare")


@app.command("check")
def check_command(
    folder: Annotated[Path, typer.Argument(help="A prepared data set.")],
    tau: Annotated[float, typer.Option(help="Concept k listens to j where P(k given j) exceeds this.")] = 0.10,
    against: Annotated[
        Path | None, typer.Option(help="Another prepared data set, to look for the same films in.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the pictures. [default: FOLDER/check]")] = None,
    as_json: Json = False,
    config: ConfigFile = None,
    size: Size = None,
) -> None:
    """Look for leaks, doubles and contradictions; print what is in the set; draw it.

    Ends with exit code 1 when something was found that makes figures worthless.

    Example: medgrape data check data/tb --tau 0.1
    """
    report = run_check(folder, config_with(config, size), tau=tau, against=against, out=out, as_json=as_json)
    if report.errors:
        raise typer.Exit(1)


def run_check(
    folder: Path,
    settings: Config,
    *,
    tau: float = 0.10,
    against: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> CheckReport:
    """Check a data set, draw its figures and print the report."""
    if not 0 <= tau <= 1:
        raise UserError(f"--tau is a probability from 0 to 1, not {tau:g}.")
    dataset = Dataset.load(folder)
    films = cached_films(settings, dataset, folder, track)
    other = None
    if against is not None:
        other_dataset = Dataset.load(against)
        other = other_dataset, cached_films(settings, other_dataset, against, track)
    with err.status("checking"):
        report = check(dataset, films, tau=tau, against=other)
        figures = draw_figures(report, films, out or folder / "check")
    pictures = {name: str(path) for name, path in vars(figures).items()}
    if as_json:
        print_json(report.to_json() | {"pictures": pictures})
    else:
        print_report(report)
        for path in pictures.values():
            note(f"picture: {path}")
    return report


def print_report(report: CheckReport) -> None:
    """Print the report as tables."""
    summary, counts = report.to_json(), report.class_counts()
    films, patients, boxes = summary["films"], summary["patients"], summary["boxes"]
    note(f"{summary['name']}: {films:,} films of {patients:,} patients, {boxes:,} boxes")
    rows = [(name, *(counts[split][name] for split in SPLITS)) for name in report.dataset.classes]
    table("Films", ("class", *SPLITS), rows)
    table(
        f"Concepts (blind pointing on {report.guessed_on}: what a map must beat)",
        ("concept", "films", "not known", "boxes", f"{report.guessed_on} films", "random point", "fixed point"),
        [(name, *count.values(), *_blind_pointing(report, name)) for name, count in report.concept_counts().items()],
    )
    graph = summary["graph"]
    others = [edge for edge in graph["listening"] if edge["listener"] != edge["speaker"]]
    strongest = sorted(others, key=lambda edge: -edge["probability"])[:EDGES_SHOWN]
    table(
        f"Concept graph at tau {graph['tau']:g}: {graph['nodes']} nodes, {graph['edges']} edges with self-loops",
        ("listens", "to", "P(listens given to)", "of films"),
        [(edge["listener"], edge["speaker"], f"{edge['probability']:.3f}", edge["films"]) for edge in strongest],
    )
    if len(others) > EDGES_SHOWN:
        note(f"and {len(others) - EDGES_SHOWN} weaker ones: see the picture, or --json")
    for kind in ("notes", "warnings", "errors"):
        for line in summary[kind]:
            note(f"{kind.removesuffix('s')}: {line}")
    note("no errors" if not summary["errors"] else f"{len(summary['errors'])} kinds of error")


def _blind_pointing(report: CheckReport, name: str) -> tuple[str, str, str]:
    guess = report.guesses.get(name)
    if guess is None:
        return "-", "-", "-"
    return str(guess.pairs), f"{guess.random:.3f}", "-" if guess.fixed is None else f"{guess.fixed:.3f}"
