"""``medgrape predict``: many films read in bulk, into one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, watch
from medgrape.cli.options import Address, EngineName, Json, found_run, outside_runs, refuse_lost_address

if TYPE_CHECKING:
    from medgrape.bulk.results import Summary
    from medgrape.bulk.run import Order


def predict(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Films, folders, lists (.txt, or .csv with a column path), prepared data sets, or URLs of storage."
        ),
    ],
    model: Annotated[
        Path,
        typer.Option(help="A run, a model in one file, or ORG/NAME@COMMIT on a model hub.", callback=found_run),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the table; a call that was broken off goes on there.")],
    engine: EngineName = "local",
    address: Address = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that read. [default: one for each core]")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Films that the model sees at once.")] = 8,
    shard: Annotated[
        int | None, typer.Option(min=1, help="Films to a part of the table. [default: by how many there are]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read many films: a Parquet table with one row for each, whatever happens to the processes that read them.

    Example: medgrape predict films/ --model runs/demo --out readings
    """
    from medgrape.bulk.run import Order

    refuse_lost_address(engine, address)
    order = Order(tuple(paths), model, outside_runs(out), batch, shard)
    summary = _on_ray(order, address, workers) if engine == "ray" else _here(order, workers)
    if as_json:
        print_json(summary.to_json())
    else:
        _print(summary)


def _here(order: "Order", workers: int | None) -> "Summary":
    from medgrape.bulk.local import LocalEngine, cores
    from medgrape.bulk.run import read_in_bulk

    return read_in_bulk(order, LocalEngine(workers or cores()), watch)


def _on_ray(order: "Order", address: str | None, workers: int | None) -> "Summary":
    from medgrape.bulk.ray_cluster import RayEngine, cluster, cluster_cores
    from medgrape.bulk.run import read_in_bulk

    with cluster(address):
        return read_in_bulk(order, RayEngine(workers or cluster_cores()), watch)


def _print(summary: "Summary") -> None:
    told = summary.to_json()
    for one in told["refused_films"]:
        note(f"refused: {one['film']}: {one['reason']}")
    if told["refused"] > len(told["refused_films"]):
        note(f"refused: {told['refused'] - len(told['refused_films']):,} more; the table has them all")
    before = f", of which {told['films_found_done']:,} were done before" if told["films_found_done"] else ""
    figures = f"{told['read']:,} read, {told['refused']:,} refused, {told['seconds']:.1f} s"
    note(f"{told['films']:,} films{before}: {figures}")
    note(f"table: {told['out']}, {told['parts']} part{'s' if told['parts'] != 1 else ''} in Parquet")
    note(told["notice"])
