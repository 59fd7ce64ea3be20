"""``medgrape data``: prepare and check data sets."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option, Typer

from medgrape.cli.console import err, note, print_json, table, track
from medgrape.cli.options import ConfigFile, Json, Size, config_with
from medgrape.cli.prepare import app as prepare
from medgrape.config import Config
from medgrape.datasets.cache import cached_films
from medgrape.datasets.check import CheckReport, check
from medgrape.datasets.dataset import SPLITS, Dataset
from medgrape.datasets.figures import draw_figures
from medgrape.errors import UserError

_EDGES_SHOWN = 15
app = Typer(no_args_is_help=True, help="Prepare and check data sets.")
app.add_typer(prepare, name="prepare")


@app.command("check")
def check_command(
    folder: Annotated[Path, Argument(help="Folder of a prepared data set.")],
    tau: Annotated[
        float, Option(help="Draw an edge from concept j to k if films with j show k more often than this share.")
    ] = 0.10,
    against: Annotated[Path | None, Option(help="Another prepared data set, to find films that are in both.")] = None,
    out: Annotated[Path | None, Option(help="Folder for the pictures. (default: FOLDER/check)")] = None,
    as_json: Json = False,
    config: ConfigFile = None,
    size: Size = None,
) -> None:
    """Find leaks between splits, duplicates and contradictions in a data set; print and draw its contents.

    Exit code 1 on errors that would make results worthless.

    Example: medgrape data check data/tb --tau 0.1
    """
    report = run_check(folder, config_with(config, size), tau=tau, against=against, out=out, as_json=as_json)
    if report.errors:
        raise Exit(1)


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
        _print_report(report)
        for path in pictures.values():
            note(f"picture: {path}")
    return report


def _print_report(report: CheckReport) -> None:
    summary, counts = report.to_json(), report.class_counts()
    films, patients, boxes = summary["films"], summary["patients"], summary["boxes"]
    note(f"{summary['name']}: {films:,} films of {patients:,} patients, {boxes:,} boxes")
    rows = [(name, *(counts[split][name] for split in SPLITS)) for name in report.dataset.classes]
    table("Films", ("class", *SPLITS), rows)
    concept_rows = []
    for name, count in report.concept_counts().items():
        blind = report.blind_pointing.get(name)
        pointing = (None, None, None) if blind is None else (blind.pairs, blind.random, blind.fixed)
        concept_rows.append((name, *count.values(), *pointing))
    table(
        "Concepts, with the hit rates of points chosen without looking at the film, which a map must exceed",
        ("concept", "films", "not known", "boxes", f"{report.pointing_split} films", "random point", "fixed point"),
        concept_rows,
    )
    graph = summary["graph"]
    edges = [edge for edge in graph["listening"] if edge["listener"] != edge["speaker"]]
    strongest = sorted(edges, key=lambda edge: -edge["probability"])[:_EDGES_SHOWN]
    table(
        f"Concept graph at tau {graph['tau']:g}: {graph['nodes']} nodes, {graph['edges']} edges with self-loops",
        ("to", "from", "P(to given from)", "of films"),
        [(edge["listener"], edge["speaker"], edge["probability"], edge["films"]) for edge in strongest],
    )
    if len(edges) > _EDGES_SHOWN:
        note(f"and {len(edges) - _EDGES_SHOWN} weaker edges: see the picture, or --json")
    for level in ("notes", "warnings", "errors"):
        for line in summary[level]:
            note(f"{level.removesuffix('s')}: {line}")
    note("no errors" if not summary["errors"] else f"{len(summary['errors'])} kinds of error")
