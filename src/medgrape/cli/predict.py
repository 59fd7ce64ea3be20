"""``medgrape predict``: read many films into one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from medgrape.cli.console import note, print_result, watch
from medgrape.cli.options import Address, EngineName, Json, ModelOption, check_address, outside_runs

if TYPE_CHECKING:
    from medgrape.bulk.results import Summary


def predict(
    paths: Annotated[
        list[str], Argument(help="Films, folders, lists (.txt or .csv), prepared data sets, or storage URLs.")
    ],
    model: ModelOption,
    out: Annotated[Path, Option(help="Folder for the table; an interrupted call continues there.")],
    engine: EngineName = "local",
    address: Address = None,
    workers: Annotated[int | None, Option(min=1, help="Number of processes. (default: one per core)")] = None,
    batch: Annotated[int, Option(min=1, help="Batch size of the model.")] = 8,
    shard: Annotated[int | None, Option(min=1, help="Films per file of the table. (default: automatic)")] = None,
    as_json: Json = False,
) -> None:
    """Read many films into a Parquet table with one row per film; films that cannot be read have a row, too.

    A .csv list names the films in its column path.

    Example: medgrape predict films/ --model runs/demo --out readings
    """
    from medgrape.bulk.run import BulkRequest, read_in_bulk

    check_address(engine, address)
    request = BulkRequest(tuple(paths), model, outside_runs(out), batch, shard)
    if engine == "ray":
        from medgrape.bulk.ray_cluster import RayEngine, cluster, cluster_cores

        with cluster(address):
            summary = read_in_bulk(request, RayEngine(workers or cluster_cores()), watch)
    else:
        from medgrape.bulk.local import LocalEngine, cores

        summary = read_in_bulk(request, LocalEngine(workers or cores()), watch)
    print_result(summary, _print, as_json=as_json)


def _print(summary: "Summary") -> None:
    report = summary.to_json()
    for refusal in report["refused_films"]:
        note(f"refused: {refusal['film']}: {refusal['reason']}")
    if report["refused"] > len(report["refused_films"]):
        note(f"refused: {report['refused'] - len(report['refused_films']):,} more; the table lists all of them")
    before = f", {report['films_found_done']:,} of them by earlier calls" if report["films_found_done"] else ""
    figures = f"{report['read']:,} read, {report['refused']:,} refused, {report['seconds']:.1f} s"
    note(f"{report['films']:,} films{before}: {figures}")
    note(f"table: {report['out']}, {report['parts']} part{'s' if report['parts'] != 1 else ''} in Parquet")
    note(report["notice"])
