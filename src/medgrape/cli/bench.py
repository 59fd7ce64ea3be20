"""``medgrape bench``: speed as ratios against a named alternative in the same run."""

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.benchmarks.ratio import Ratio
from medgrape.cli.console import err, print_json, table, track
from medgrape.cli.options import Json
from medgrape.errors import UserError

if TYPE_CHECKING:  # the server is slow to import
    from medgrape.benchmarks.server import Finding

app = typer.Typer(no_args_is_help=True, help="Speed, as ratios against a named alternative in the same run.")


@app.callback()
def _group() -> None:
    """Speed, as ratios against a named alternative in the same run."""


@app.command()
def films(
    rounds: Annotated[int, typer.Option(min=3, help="How often each is timed; the median counts.")] = 15,
    as_json: Json = False,
) -> None:
    """Reading films against the bare decoders, and the cache against decoding again.

    Example: medgrape bench films
    """
    try:
        from medgrape.benchmarks.films import bench_films
    except ModuleNotFoundError as missing:
        raise UserError("bench films reads DICOM, which needs: pip install 'medgrape[dicom]'.") from missing
    _report("Films", lambda: bench_films(rounds), as_json=as_json)


@app.command()
def training(
    rounds: Annotated[int, typer.Option(min=1, help="How often each is timed; the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """An epoch of stages 3 and 4 against an epoch that runs the backbone, on the same drawn films.

    Example: medgrape bench training
    """
    from medgrape.benchmarks.training import bench_training  # torch is slow to import

    _report("Training", lambda: bench_training(rounds), as_json=as_json)


@app.command()
def interaction(
    rounds: Annotated[int, typer.Option(min=3, help="How often each is timed; the median counts.")] = 15,
    as_json: Json = False,
) -> None:
    """A correction with its new classes and maps, against opening the film anew.

    Example: medgrape bench interaction
    """
    from medgrape.benchmarks.interaction import bench_interaction  # torch is slow to import

    _report("Interaction", lambda: bench_interaction(rounds), as_json=as_json)


@app.command()
def faithfulness(
    rounds: Annotated[int, typer.Option(min=1, help="How often each is timed; the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """Insertion and deletion against the PixelFlipping of Quantus, which must be installed for it.

    Example: medgrape bench faithfulness
    """
    from medgrape.benchmarks.faithfulness import bench_faithfulness  # torch is slow to import

    _report("Faithfulness", lambda: bench_faithfulness(rounds), as_json=as_json)


@app.command()
def server(
    run: Annotated[Path, typer.Argument(help="A run to serve; medgrape demo --quick makes one in a minute.")],
    database: Annotated[str, typer.Option(help="sqlite or postgresql, for which one is started.")] = "sqlite",
    kills: Annotated[int, typer.Option(min=0, help="How often the server is killed under load.")] = 20,
    readers: Annotated[int, typer.Option(min=0, max=200, help="How many draw boxes at once.")] = 50,
    boxes: Annotated[int, typer.Option(min=1, max=1000, help="How many boxes each of them draws.")] = 20,
    pause: Annotated[float, typer.Option(min=0, help="Mean seconds between two boxes of a reader.")] = 1.0,
    requests: Annotated[int, typer.Option(min=0, help="How many requests memory is watched over.")] = 10_000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Of the moments at which it is killed.")] = 0,
    as_json: Json = False,
) -> None:
    """A real server on this machine: many readers against one, memory over time, kills under load; exit code 1 if a
    promise is broken.

    Example: medgrape bench server demo/tb-quick-model-seed0 --database postgresql
    """
    from medgrape.benchmarks.server import Order, bench_server

    if database not in ("sqlite", "postgresql"):
        raise UserError(f"--database is sqlite or postgresql; {database!r} is neither.")
    _check_psutil()
    order = Order(run, database, kills, readers, boxes, pause, requests, workers, seed)
    title = f"Server, {database}, {workers} worker{'s' if workers > 1 else ''}"
    _tell(title, list(bench_server(order, track)), as_json=as_json)


@app.command()
def page(
    run: Annotated[Path, typer.Argument(help="A run to serve; medgrape demo --quick makes one in a minute.")],
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer.")] = 2,
    as_json: Json = False,
) -> None:
    """The page in Chromium before a real server: how soon a film is seen, frames while a box is drawn, how far the live
    check lags; exit code 1 if a promise is broken.

    Example: medgrape bench page demo/tb-quick-model-seed0
    """
    if importlib.util.find_spec("playwright") is None:
        raise UserError("bench page drives a browser, which needs: pip install playwright.")
    from medgrape.benchmarks.page import bench_page

    with err.status("timing"):
        findings = list(bench_page(run, workers=workers))
    _tell("Page", findings, as_json=as_json)


def _tell(title: str, findings: "Sequence[Finding]", *, as_json: bool) -> None:
    """What was promised, what was found; a broken promise is exit code 1."""
    if as_json:
        print_json([one.to_json() for one in findings])
    else:
        rows = [(one.what, one.found, one.promised, "kept" if one.kept else "BROKEN") for one in findings]
        table(title, ("what", "found", "promised", ""), rows)
    if not all(one.kept for one in findings):
        raise typer.Exit(1)


def _check_psutil() -> None:
    if importlib.util.find_spec("psutil") is None:
        raise UserError("bench server looks at processes, which needs: pip install psutil.")


def _report(title: str, timed: Callable[[], Iterable[Ratio]], *, as_json: bool) -> None:
    with err.status("timing"):
        ratios = list(timed())
    if as_json:
        print_json([ratio.to_json() for ratio in ratios])
    else:
        table(title, ("what", "ours", "against", "theirs", "ratio", "target"), [_row(ratio) for ratio in ratios])


def _row(ratio: Ratio) -> tuple[str, ...]:
    unit = "x its cost" if ratio.at_most else "x faster"
    limit = "at most" if ratio.at_most else "at least"
    met = "met" if ratio.met else "missed"
    return (
        ratio.what, f"{ratio.ours * 1e3:.2f} ms", ratio.alternative, f"{ratio.theirs * 1e3:.2f} ms",
        f"{ratio.value:.3g} {unit}", f"{limit} {ratio.target:g} ({met})",
    )  # fmt: skip
