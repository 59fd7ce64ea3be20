"""``medgrape reproduce``: the paper's tables on any data set, and those of docs/explanation/real-films.md."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table, track, watch
from medgrape.cli.options import Address, EngineName, Json, outside_runs, refuse_lost_address
from medgrape.config import MAX_SEED
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.paper.reproduce import PaperRequest

REAL_FILMS, ALL, REPORT = "real-films", "all", "report"
OTHERS = {
    ALL: "every suite below, in one report",
    REPORT: "the report again, from the results in --out alone: no film is needed",
    REAL_FILMS: "every variant on real films, with its seeds: the table of docs/explanation/real-films.md",
}
FIGURES = {
    "mean map": "pointing.all.mean", "fixed prior": "pointing.all.fixed", "safety, balanced": "safety.balanced",
    "active or obsolete": "telling_apart", "1 film": "one_shot", "macro-F1": "macro_f1", "mean AUC": "auc.all",
}  # fmt: skip


def reproduce(
    suites: Annotated[
        list[str] | None, typer.Argument(help="Which tables: all, or some by name. Without any, suites are listed.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A prepared data set, in place of TBX11K in the paper.")] = None,
    second: Annotated[
        Path | None, typer.Option(help="Another one with many findings, in place of NIH; some tables need it.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for runs, results and the report.")] = Path("reproduced"),
    seeds: Annotated[str, typer.Option(help="Of training, such as 0,1,2. [default: 0,1,2,3,42; --quick: 0,1]")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A small backbone, few epochs, two seeds.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="Base settings instead of the paper's on a small backbone.")
    ] = None,
    second_config: Annotated[
        Path | None, typer.Option(help="Base settings of the second set. [default: tau 0.05 and half the rates]")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="List the jobs with their estimated time, and stop.")] = False,
    tbx11k: Annotated[Path | None, typer.Option(help="real-films: TBX11K's folder, in its official layout.")] = None,
    nih: Annotated[Path | None, typer.Option(help="real-films: NIH ChestX-ray14's folder, likewise.")] = None,
    variant: Annotated[list[str] | None, typer.Option(help="real-films: only this one; may be given again.")] = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Make tables of the paper again. Jobs that are done are not repeated.

    Example: medgrape reproduce all --data demo/data --out reproduced --quick
    """
    refuse_lost_address(engine, address)
    suites = suites or ([ALL] if plan else [])
    if not suites:
        _list(as_json=as_json)
        return
    if engine == "ray" and suites in ([REAL_FILMS], [REPORT]):
        raise UserError(f"--engine ray is for the paper's tables; {suites[0]} runs on this machine.")
    tell = (lambda _sentence: None) if as_json else note  # with --json, standard output holds nothing but JSON
    if suites == [REAL_FILMS]:
        _real_films({"tbx11k": tbx11k, "nih": nih}, outside_runs(out), variant or [], _seeds(seeds), tell, as_json)
    elif suites == [REPORT]:
        from medgrape.paper.reproduce import report_again

        _show(report_again(outside_runs(out)), as_json=as_json)
    else:
        from medgrape.paper.reproduce import PaperRequest
        from medgrape.paper.reproduce import reproduce as run
        from medgrape.paper.suites import chosen_suites

        alone = next((name for name in (REAL_FILMS, REPORT, ALL) if name in suites and len(suites) > 1), None)
        if alone is not None:
            raise UserError(f"{alone} stands alone; name it without other suites.")
        chosen = chosen_suites(suites, OTHERS)
        if data is None:
            raise UserError("These tables need films: name a prepared data set with --data DIR.")
        request = PaperRequest(chosen, data, outside_runs(out), second, _seeds(seeds), quick, config, second_config)
        if plan:
            _plan(request, as_json=as_json)
        elif engine == "ray":
            from medgrape.bulk.ray_cluster import cluster
            from medgrape.paper.ray_jobs import do_all_on_cluster

            with cluster(address):
                _show(run(request, tell=tell, track=track, watch=watch, work=do_all_on_cluster), as_json=as_json)
        else:
            _show(run(request, tell=tell, track=track, watch=watch), as_json=as_json)


def _list(*, as_json: bool) -> None:
    from medgrape.paper.suites import SUITES

    titles = OTHERS | {suite.name: suite.title for suite in SUITES.values()}
    if as_json:
        print_json(titles)
    else:
        table("Suites", ("name", "what"), list(titles.items()))


def _plan(request: "PaperRequest", *, as_json: bool) -> None:
    from medgrape.paper.estimate import plan

    jobs = plan(request.jobs())
    left = sum(planned.seconds for planned in jobs if not planned.done)
    if as_json:
        rows = [{"job": one.job.name, "seconds": round(one.seconds, 1), "done": one.done} for one in jobs]
        print_json({"jobs": rows, "seconds_left": round(left, 1)})
        return
    cells = [(one.job.name, f"{one.seconds:,.0f} s", "done" if one.done else "") for one in jobs]
    table(f"{len(jobs)} jobs", ("job", "estimated", ""), cells)
    note(f"About {left / 60:,.0f} minutes are left, estimated from the time that a batch of films takes here.")


def _show(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    for made in report["tables"]:
        note(f"{made['suite']}: {made['reading']}")
    for warning in report["warnings"]:
        note(f"warning: {warning}")
    note(f"report: {report['report']}")


def _real_films(
    sources: dict[str, Path | None],
    out: Path,
    variants: list[str],
    seeds: tuple[int, ...],
    tell: Callable[[str], None],
    as_json: bool,
) -> None:
    from medgrape.paper.recipes import load_variants
    from medgrape.paper.reproduce import reproduce as run
    from medgrape.paper.suites.real_films import RealFilms

    request = RealFilms(load_variants(), sources, out, tuple(variants), seeds)
    report = run(request, tell=tell, track=track, watch=watch)
    if as_json:
        print_json(report)
        return
    rows = [
        (row["name"], row["n"], *(_figure(row["figures"].get(name)) for name in FIGURES.values()))
        for row in report["variants"]
    ]
    title = "Mean over seeds; all figures, with chance and majority beside each, are in the tables"
    table(title, ("variant", "seeds", *FIGURES), rows)
    note(f"tables: {out / 'real-films.md'}")


def _figure(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "-"
    return f"{figure['mean']:.3f}" + ("" if figure["sd"] is None else f" ± {figure['sd']:.3f}")


def _seeds(text: str) -> tuple[int, ...]:
    try:
        seeds = tuple(int(number) for number in text.split(",")) if text else ()
    except ValueError:
        seeds = (-1,)
    if any(not 0 <= seed <= MAX_SEED for seed in seeds):
        raise UserError(f"--seeds takes whole numbers with commas, such as 0,1,2, up to {MAX_SEED}; not {text!r}.")
    return tuple(dict.fromkeys(seeds))
