"""``medgrape bench``: speed as ratios against a named alternative in the same run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from medgrape.benchmarks.comparing import Comparison, compare, differences
from medgrape.benchmarks.results import Outcome, Results, machine
from medgrape.benchmarks.suites import SUITES, Suite, measured, measured_apart, suite_named
from medgrape.benchmarks.tables import COLUMNS, COMPARED, cells, compared_cells, markdown, shortcomings, told_machine
from medgrape.cli.bench_promises import page, server
from medgrape.cli.bench_scale import scale
from medgrape.cli.console import err, note, print_json, table
from medgrape.cli.options import Json, outside_runs
from medgrape.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Speed, as ratios against a named alternative in the same run.")
Save = Annotated[Path | None, typer.Option(help="Keep what was measured in this JSON file, to compare with later.")]
Compare = Annotated[
    Path | None, typer.Option("--compare", help="A file of --save: show what changed since, and what is noise.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit code 1 where a target is missed, a part not run or a row slower.")
]


@app.callback()
def _group() -> None:
    """Speed, as ratios against a named alternative in the same run."""


@app.command("all")
def every(
    only: Annotated[list[str] | None, typer.Option(help="Only this suite; may be given several times.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="All but this suite; may be given several times.")] = None,
    save: Save = None,
    earlier: Compare = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Every suite but server and page, one after the other; then the targets that are missed.

    Example: medgrape bench all --save speed.json
    """
    wanted = [suite_named(name) for name in only] if only else list(SUITES)
    left_out = [suite_named(name) for name in skip or []]
    chosen = [suite for suite in wanted if suite not in left_out]
    _run(chosen, measured_apart, _Wish(save, earlier, strict, as_json))


def _command(suite: Suite) -> Callable[..., None]:
    def run(
        rounds: Annotated[
            int, typer.Option(min=suite.fewest, help="How often each side is timed; slow rows take fewer.")
        ] = suite.rounds,
        save: Save = None,
        earlier: Compare = None,
        strict: Strict = False,
        as_json: Json = False,
    ) -> None:
        outcome = _run([suite], lambda one: measured(one, rounds), _Wish(save, earlier, strict, as_json))[0]
        if outcome.not_run is not None:
            raise UserError(outcome.not_run)

    run.__doc__ = f"{suite.about}\n\nExample: medgrape bench {suite.name} --compare speed.json"
    return run


for _suite in SUITES:
    app.command(_suite.name)(_command(_suite))
app.command()(server)
app.command()(page)
app.command()(scale)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file of --save.")],
    earlier: Compare = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of docs/explanation/speed.md.")
    ] = False,
) -> None:
    """What was measured earlier, without measuring anything.

    Example: medgrape bench show speed.json --markdown
    """
    results = Results.load(file)
    if as_markdown:
        typer.echo(markdown(results))
        return
    for outcome in results.outcomes:
        _print(outcome)
    then = None if earlier is None else Results.load(earlier)
    _conclude(results, then, [] if then is None else compare(then, results))
    note(told_machine(results))


@dataclass(frozen=True)
class _Wish:
    """What is to be done with the figures."""

    save: Path | None
    compare: Path | None
    strict: bool
    as_json: bool


def _run(suites: Sequence[Suite], measure: Callable[[Suite], Outcome], wish: _Wish) -> tuple[Outcome, ...]:
    """Measure, tell while measuring, keep, compare."""
    then = None if wish.compare is None else Results.load(wish.compare)  # before minutes are spent on measuring
    if wish.save is not None:
        outside_runs(wish.save)
    outcomes = [_timed(suite, measure, f"{number} of {len(suites)}", wish) for number, suite in enumerate(suites, 1)]
    results = Results(machine(), tuple(outcomes))
    if wish.save is not None:
        results.save(wish.save)
    comparisons = [] if then is None else compare(then, results)
    if wish.as_json:
        print_json(_told(results, comparisons))
    else:
        _conclude(results, then, comparisons)
    if wish.strict and _fails(results, comparisons):
        raise typer.Exit(1)
    return results.outcomes


def _timed(suite: Suite, measure: Callable[[Suite], Outcome], which: str, wish: _Wish) -> Outcome:
    err.print(f"{which}, {suite.name}: {suite.about}", markup=False, soft_wrap=True)
    with err.status(f"timing {suite.name}"):
        outcome = measure(suite)
    if not wish.as_json:
        _print(outcome)
    return outcome


def _print(outcome: Outcome) -> None:
    if outcome.rows:
        table(f"{outcome.suite}, {outcome.seconds:.0f} s", COLUMNS, [cells(row) for row in outcome.rows])
    if outcome.not_run is not None:
        note(f"{outcome.suite}: not run: {outcome.not_run}")


def _conclude(results: Results, then: Results | None, comparisons: Sequence[Comparison]) -> None:
    for difference in [] if then is None else differences(then, results):
        note(difference)
    if comparisons:
        table("Then and now", COMPARED, [compared_cells(one) for one in comparisons])
    for sentence in shortcomings(results) or ["Every target is met."]:
        note(sentence)


def _told(results: Results, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    return results.to_json() | {
        "missed": [[suite, *row.key] for suite, row in results.missed],
        "compared": [one.to_json() for one in comparisons],
    }


def _fails(results: Results, comparisons: Sequence[Comparison]) -> bool:
    slower = any(one.verdict == "slower" for one in comparisons)
    return bool(results.missed) or any(outcome.not_run for outcome in results.outcomes) or slower
