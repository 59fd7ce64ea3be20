"""``medgrape data``: prepare a data set, and check one."""

from pathlib import Path
from typing import Annotated

import typer

from medgrape.cli.console import err, note, print_json, table, track
from medgrape.cli.options import ConfigFile, Json, Size, config_with
from medgrape.cli.prepare import app as prepare
from medgrape.config import Config
from medgrape.datasets.check import CheckReport, check, open_films
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
    """Check, draw and print."""
    if not 0 <= tau <= 1:
        raise UserError(f"--tau is a probability from 0 to 1, not {tau:g}.")
    dataset = Dataset.load(folder)
    films = open_films(dataset, folder, settings, track)
    other = None
    if against is not None:
        other_set = Dataset.load(against)
        other = other_set, open_films(other_set, against, settings, track)
    with err.status("checking"):
        report = check(dataset, films, tau=tau, against=other)
        figures = draw_figures(report, films, out or folder / "check")
    pictures = {"contact_sheet": str(figures.contact_sheet), "label_counts": str(figures.label_counts)}
    pictures["co_occurrence"] = str(figures.co_occurrence)
    if as_json:
        print_json(report.to_json() | {"pictures": pictures})
    else:
        print_report(report)
        for path in pictures.values():
            note(f"picture: {path}")
    return report


def print_report(report: CheckReport) -> None:
    """The report as tables."""
    told = report.to_json()
    note(f"{told['name']}: {told['films']:,} films of {told['patients']:,} patients, {told['boxes']:,} boxes")
    counts = report.class_counts()
    rows = [(name, *(counts[split][name] for split in SPLITS)) for name in report.dataset.classes]
    table("Films", ("class", *SPLITS), rows)
    table(
        f"Concepts (blind pointing on {report.guessed_on}: what a map must beat)",
        ("concept", "films", "not known", "boxes", f"{report.guessed_on} films", "random point", "fixed point"),
        [(name, *counted.values(), *_blind(report, name)) for name, counted in report.concept_counts().items()],
    )
    graph = told["graph"]
    others = [edge for edge in graph["listening"] if edge["listener"] != edge["speaker"]]
    listening = sorted(others, key=lambda edge: -edge["probability"])[:EDGES_SHOWN]
    table(
        f"Concept graph at tau {graph['tau']:g}: {graph['nodes']} nodes, {graph['edges']} edges with self-loops",
        ("listens", "to", "P(listens given to)", "of films"),
        [(e["listener"], e["speaker"], f"{e['probability']:.3f}", e["films"]) for e in listening],
    )
    if len(others) > EDGES_SHOWN:
        note(f"and {len(others) - EDGES_SHOWN} weaker ones: see the picture, or --json")
    for kind in ("notes", "warnings", "errors"):
        for line in told[kind]:
            note(f"{kind.removesuffix('s')}: {line}")
    note("no errors" if not told["errors"] else f"{len(told['errors'])} kinds of error")


def _blind(report: CheckReport, name: str) -> tuple[str, str, str]:
    guess = report.guesses.get(name)
    if guess is None:
        return "-", "-", "-"
    return str(guess.pairs), f"{guess.random:.3f}", "-" if guess.fixed is None else f"{guess.fixed:.3f}"
