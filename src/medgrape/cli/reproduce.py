"""``medgrape reproduce``: run published tables again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table, track, watch
from medgrape.cli.options import Json, outside_runs
from medgrape.config import MAX_SEED
from medgrape.errors import UserError
from medgrape.spelling import nearest

SUITES = {"real-films": "every variant on real films, with its seeds: the table of docs/real-films.md"}
FIGURES = {
    "mean map": "pointing.all.mean", "fixed prior": "pointing.all.fixed", "safety, balanced": "safety.balanced",
    "active or obsolete": "telling_apart", "1 film": "one_shot", "macro-F1": "macro_f1", "mean AUC": "auc.all",
}  # fmt: skip


def reproduce(
    suite: Annotated[
        str | None, typer.Argument(help="Which tables: real-films. Without it, suites are listed.")
    ] = None,
    tbx11k: Annotated[Path | None, typer.Option(help="TBX11K's folder, in its official layout.")] = None,
    nih: Annotated[Path | None, typer.Option(help="NIH ChestX-ray14's folder, in its official layout.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for films, runs, reports, pictures and tables.")] = Path(
        "reproduced"
    ),
    variant: Annotated[list[str] | None, typer.Option(help="Only this one; may be given several times.")] = None,
    seeds: Annotated[str, typer.Option(help="Instead of each variant's seeds, such as 0,1,2.")] = "",
    as_json: Json = False,
) -> None:
    """Run the rows of a published table again; rows that are there already are not made again.

    Example: medgrape reproduce real-films --tbx11k TBX11K --nih ChestX-ray14 --out reproduced
    """
    if suite is None:
        _list(as_json=as_json)
        return
    if suite not in SUITES:
        raise UserError(f"There is no suite {suite!r}{nearest(suite, SUITES)}.")
    numbers = _numbers(seeds)
    from medgrape.benchmarks.real_films import Suite  # torch is slow to import
    from medgrape.benchmarks.real_films import reproduce as run_suite
    from medgrape.benchmarks.real_films_variants import load_variants

    wanted = Suite(load_variants(), {"tbx11k": tbx11k, "nih": nih}, outside_runs(out))
    tell = _quiet if as_json else note
    told = run_suite(wanted, variant or (), numbers, tell=tell, track=track, watch=watch)
    if as_json:
        print_json(told)
        return
    _print(told)
    note(f"tables: {out / 'real-films.md'}")


def _quiet(_sentence: str) -> None:
    """Nothing but JSON on standard output."""


def _list(*, as_json: bool) -> None:
    if as_json:
        print_json(SUITES)
    else:
        table("Suites", ("name", "what"), list(SUITES.items()))


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
