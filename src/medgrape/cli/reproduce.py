"""``medgrape reproduce``: make the paper's tables, or those of docs/explanation/real-films.md."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from medgrape.cli.console import note, print_json, print_result, print_warnings, table, track, watch
from medgrape.cli.options import Address, EngineName, Json, check_address, outside_runs, parse_numbers
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.paper.reproduce import PaperRequest

REAL_FILMS, ALL, REPORT = "real-films", "all", "report"
_OTHERS = {
    ALL: "all suites below, in one report",
    REPORT: "write the report again from the results in --out; needs no film",
    REAL_FILMS: "every variant on real films, with its seeds: the table of docs/explanation/real-films.md",
}
_REAL_FILM_COLUMNS = {
    "mean map": "pointing.all.mean", "fixed prior": "pointing.all.fixed", "safety, balanced": "safety.balanced",
    "active or obsolete": "telling_apart", "1 film": "one_shot", "macro-F1": "macro_f1", "mean AUC": "auc.all",
}  # fmt: skip


def reproduce(
    suites: Annotated[
        list[str] | None, Argument(help="Names of suites, or all, or report, or real-films. (default: list them)")
    ] = None,
    data: Annotated[Path | None, Option(help="Prepared data set, in place of the paper's TBX11K.")] = None,
    second: Annotated[
        Path | None, Option(help="Prepared data set, in place of NIH. Without it, its tables are left out.")
    ] = None,
    out: Annotated[Path, Option(help="Folder for runs, results and the report.")] = Path("reproduced"),
    seeds: Annotated[str, Option(help="Training seeds, such as 0,1,2. (default: 0,1,2,3,42; with --quick: 0,1)")] = "",
    quick: Annotated[
        bool, Option("--quick", help="Smaller films (160 px), partly frozen backbone, few epochs, two seeds.")
    ] = False,
    config: Annotated[Path | None, Option(help="Base settings. (default: the paper's, on a small backbone)")] = None,
    second_config: Annotated[
        Path | None, Option(help="Settings for --second. (default: --config, tau 0.05, half the learning rates)")
    ] = None,
    plan: Annotated[bool, Option("--plan", help="Only list the jobs with their estimated times.")] = False,
    tbx11k: Annotated[Path | None, Option(help="For real-films: official folder of TBX11K.")] = None,
    nih: Annotated[Path | None, Option(help="For real-films: official folder of NIH ChestX-ray14.")] = None,
    variant: Annotated[list[str] | None, Option(help="For real-films: only this variant; repeatable.")] = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Make tables of the paper on any data set. Finished jobs are not repeated.

    Example: medgrape reproduce all --data demo/data --out reproduced --quick
    """
    check_address(engine, address)
    suites = suites or ([ALL] if plan else [])
    if not suites:
        _list_suites(as_json=as_json)
        return
    if engine == "ray" and suites in ([REAL_FILMS], [REPORT]):
        raise UserError(f"--engine ray is for the paper's tables; {suites[0]} runs on this machine.")
    numbers = parse_numbers("--seeds", seeds) if seeds else ()
    if suites == [REAL_FILMS]:
        _real_films({"tbx11k": tbx11k, "nih": nih}, outside_runs(out), variant or [], numbers, as_json=as_json)
        return
    if suites == [REPORT]:
        from medgrape.paper.reproduce import report_again

        print_result(report_again(outside_runs(out)), _print_report, as_json=as_json)
        return
    from medgrape.paper.reproduce import PaperRequest
    from medgrape.paper.suites import chosen_suites

    alone = next((name for name in (REAL_FILMS, REPORT, ALL) if name in suites and len(suites) > 1), None)
    if alone is not None:
        raise UserError(f"{alone} stands alone; name it without other suites.")
    chosen = chosen_suites(suites, _OTHERS)
    if data is None:
        raise UserError("These tables need films: name a prepared data set with --data DIR.")
    request = PaperRequest(chosen, data, outside_runs(out), second, numbers, quick, config, second_config)
    if plan:
        _print_plan(request, as_json=as_json)
    else:
        _run(request, address, on_ray=engine == "ray", as_json=as_json)


def _list_suites(*, as_json: bool) -> None:
    from medgrape.paper.suites import SUITES

    titles = _OTHERS | {suite.name: suite.title for suite in SUITES.values()}
    print_result(titles, lambda titles: table("Suites", ("name", "contents"), titles.items()), as_json=as_json)


def _print_plan(request: "PaperRequest", *, as_json: bool) -> None:
    from medgrape.paper.estimate import plan

    jobs = plan(request.jobs())
    left = sum(planned.seconds for planned in jobs if not planned.done)
    if as_json:
        rows = [{"job": p.job.name, "seconds": round(p.seconds, 1), "done": p.done} for p in jobs]
        print_json({"jobs": rows, "seconds_left": round(left, 1)})
        return
    cells = [(p.job.name, f"{p.seconds:,.0f} s", "done" if p.done else "") for p in jobs]
    table(f"{len(jobs)} jobs", ("job", "estimated time", ""), cells)
    note(f"About {left / 60:,.0f} minutes are left, estimated from the time of one batch on this machine.")


def _run(request: "PaperRequest", address: str | None, *, on_ray: bool, as_json: bool) -> None:
    from medgrape.paper.reproduce import reproduce as run

    if on_ray:
        from medgrape.bulk.ray_cluster import cluster
        from medgrape.paper.ray_jobs import do_all_on_cluster

        with cluster(address):
            report = run(request, tell=_tell(as_json), track=track, watch=watch, work=do_all_on_cluster)
    else:
        report = run(request, tell=_tell(as_json), track=track, watch=watch)
    print_result(report, _print_report, as_json=as_json)


def _print_report(report: dict[str, Any]) -> None:
    for result in report["tables"]:
        note(f"{result['suite']}: {result['reading']}")
    print_warnings(report["warnings"])
    note(f"report: {report['report']}")


def _real_films(
    sources: dict[str, Path | None], out: Path, variants: list[str], seeds: tuple[int, ...], *, as_json: bool
) -> None:
    from medgrape.paper.real_films import RealFilms
    from medgrape.paper.recipes import load_variants
    from medgrape.paper.reproduce import reproduce as run

    request = RealFilms(load_variants(), sources, out, tuple(variants), seeds)
    report = run(request, tell=_tell(as_json), track=track, watch=watch)
    if as_json:
        print_json(report)
        return
    rows = [
        (row["name"], row["n"], *(_format(row["figures"].get(name)) for name in _REAL_FILM_COLUMNS.values()))
        for row in report["variants"]
    ]
    title = "Mean over seeds; the tables have all figures, with chance and majority beside each"
    table(title, ("variant", "seeds", *_REAL_FILM_COLUMNS), rows)
    note(f"tables: {out / 'real-films.md'}")


def _tell(as_json: bool) -> Callable[[str], None]:
    """Return the function that prints progress; with ``--json``, standard output has nothing but JSON."""
    return (lambda _message: None) if as_json else note


def _format(figure: dict[str, Any] | None) -> str | None:
    if figure is None:
        return None
    return f"{figure['mean']:.3f}" + ("" if figure["sd"] is None else f" ± {figure['sd']:.3f}")
