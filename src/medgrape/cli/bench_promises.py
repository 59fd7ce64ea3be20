"""``medgrape bench server`` and ``page``: promises that a whole server keeps or breaks."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import err, print_json, table, track
from medgrape.cli.options import Json
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.benchmarks.server import Finding


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
