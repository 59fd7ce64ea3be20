"""``medgrape reproduce``: the paper's tables again, on any data set, and those of docs/explanation/real-films.md."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table, track, watch
from medgrape.cli.options import Address, EngineName, Json, outside_runs, refuse_lost_address
from medgrape.config import MAX_SEED
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.paper.reproduce import Request
    from medgrape.paper.suites.base import Suite

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
    data: Annotated[Path | None, typer.Option(help="A prepared data set, as TBX11K in the paper.")] = None,
    second: Annotated[
        Path | None, typer.Option(help="Another with many findings, as NIH in the paper; some tables need one.")
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
    plan: Annotated[bool, typer.Option("--plan", help="Tell the jobs and how long they will take, and stop.")] = False,
    tbx11k: Annotated[Path | None, typer.Option(help="real-films: TBX11K's folder, in its official layout.")] = None,
    nih: Annotated[Path | None, typer.Option(help="real-films: NIH ChestX-ray14's folder, likewise.")] = None,
    variant: Annotated[list[str] | None, typer.Option(help="real-films: only this one; may be given again.")] = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Run tables of the paper again; what is done already is not done again.

    Example: medgrape reproduce all --data demo/data --out reproduced --quick
    """
    refuse_lost_address(engine, address)
    suites = suites or ([ALL] if plan else [])
    if not suites:
        _list(as_json=as_json)
    elif engine == "ray" and suites in ([REAL_FILMS], [REPORT]):
        raise UserError(f"--engine ray is for the paper's tables; {suites[0]} runs on this machine.")
    elif suites == [REAL_FILMS]:
        _real_films(tbx11k, nih, outside_runs(out), variant or [], _numbers(seeds), as_json=as_json)
    elif suites == [REPORT]:
        from medgrape.paper.reproduce import report_again

        _show(report_again(outside_runs(out)), as_json=as_json)
    else:
        from medgrape.paper.reproduce import Request

        wanted, films = _wanted(suites), _films(data)
        request = Request(wanted, films, outside_runs(out), second, _numbers(seeds), quick, config, second_config)
        _tables(request, plan=plan, engine=engine, address=address, as_json=as_json)


def _wanted(names: list[str]) -> "tuple[Suite, ...]":
    from medgrape.paper.suites.registry import chosen

    wrong = next((name for name in (REAL_FILMS, REPORT) if name in names), None)
    if wrong is not None or (ALL in names and len(names) > 1):
        raise UserError(f"{wrong or ALL} stands alone; name it without other suites.")
    return chosen(names, OTHERS)


def _films(data: Path | None) -> Path:
    if data is None:
        raise UserError("These tables need films: name a prepared data set with --data DIR.")
    return data


def _tables(request: "Request", *, plan: bool, engine: str, address: str | None, as_json: bool) -> None:
    from medgrape.paper.reproduce import reproduce as run_suites

    if plan:
        _plan(request, as_json=as_json)
        return
    tell = _quiet if as_json else note
    if engine == "ray":
        told = _on_ray(request, address, tell)
    else:
        told = run_suites(request, tell=tell, track=track, watch=watch)
    _show(told, as_json=as_json)


def _on_ray(request: "Request", address: str | None, tell: Callable[[str], None]) -> dict[str, Any]:
    from medgrape.bulk.ray_cluster import cluster
    from medgrape.paper.ray_jobs import do_all_on_cluster
    from medgrape.paper.reproduce import reproduce as run_suites

    with cluster(address):
        return run_suites(request, tell=tell, track=track, watch=watch, work=do_all_on_cluster)


def _plan(request: "Request", *, as_json: bool) -> None:
    from medgrape.paper.estimate import plan as planned
    from medgrape.paper.reproduce import jobs_of

    results = request.results()
    jobs = planned(jobs_of(request, results), results.place)
    left = sum(one.seconds for one in jobs if not one.done)
    if as_json:
        told = [{"job": one.job.name, "seconds": round(one.seconds, 1), "done": one.done} for one in jobs]
        print_json({"jobs": told, "seconds_left": round(left, 1)})
        return
    rows = [(one.job.name, f"{one.seconds:,.0f} s", "done" if one.done else "") for one in jobs]
    table(f"{len(jobs)} jobs", ("job", "estimated", ""), rows)
    note(f"About {left / 60:,.0f} minutes are left, by the time that a batch of films takes here.")


def _show(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for made in told["tables"]:
        note(f"{made['suite']}: {made['reading']}")
    for warning in told["warnings"]:
        note(f"warning: {warning}")
    note(f"report: {told['report']}")


def _real_films(
    tbx11k: Path | None, nih: Path | None, out: Path, variants: list[str], seeds: tuple[int, ...], *, as_json: bool
) -> None:
    from medgrape.paper.real_films.reproduce import Suite
    from medgrape.paper.real_films.reproduce import reproduce as run_suite
    from medgrape.paper.real_films.variants import load_variants

    wanted = Suite(load_variants(), {"tbx11k": tbx11k, "nih": nih}, out)
    tell = _quiet if as_json else note
    told = run_suite(wanted, variants, seeds, tell=tell, track=track, watch=watch)
    if as_json:
        print_json(told)
        return
    _print(told)
    note(f"tables: {out / 'real-films.md'}")


def _quiet(_sentence: str) -> None:
    """Nothing but JSON on standard output."""


def _list(*, as_json: bool) -> None:
    from medgrape.paper.suites.registry import SUITES

    told = OTHERS | {suite.name: suite.title for suite in SUITES.values()}
    if as_json:
        print_json(told)
    else:
        table("Suites", ("name", "what"), list(told.items()))


def _print(told: dict[str, Any]) -> None:
    table(
        "Mean over seeds; all figures, with chance and majority beside each, are in the tables",
        ("variant", "seeds", *FIGURES),
        [
            (one["name"], one["n"], *(_figure(one["figures"].get(name)) for name in FIGURES.values()))
            for one in told["variants"]
        ],
    )


def _figure(spread: dict[str, Any] | None) -> str:
    if spread is None:
        return "-"
    return f"{spread['mean']:.3f}" + ("" if spread["sd"] is None else f" ± {spread['sd']:.3f}")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(number) for number in text.split(",")) if text else ()
    except ValueError:
        found = (-1,)
    if any(not 0 <= number <= MAX_SEED for number in found):
        raise UserError(f"--seeds takes whole numbers with commas, such as 0,1,2, up to {MAX_SEED}; not {text!r}.")
    return tuple(dict.fromkeys(found))
