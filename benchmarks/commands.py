"""The commands of ``python -m benchmarks``: one for each suite, and for the server, the page and the cost of a film."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.comparing import Comparison, compare, differences
from benchmarks.results import Outcome, Results, machine
from benchmarks.suites import SUITES, Suite, measured, measured_apart, suite_named
from benchmarks.tables import COLUMNS, COMPARED, cells, compared_cells, describe_machine, markdown, shortcomings
from medgrape.cli.console import err, note, print_json, table, track
from medgrape.cli.options import Json, outside_runs
from medgrape.errors import UserError

if TYPE_CHECKING:
    from benchmarks.server import Finding

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Speed of medgrape, as ratios against a named alternative in the same run.",
)
Save = Annotated[Path | None, typer.Option(help="Write the results to this JSON file, to compare with later.")]
Compare = Annotated[
    Path | None, typer.Option("--compare", help="A file of --save: show what changed since, and what is noise.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit code 1 if a target is missed, a suite not run, or a row slower.")
]
BenchmarkedRun = Annotated[Path, typer.Argument(help="A run to serve; medgrape demo --quick trains one in a minute.")]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes of the server.")]


@dataclass(frozen=True)
class Output:
    """What to do with the results."""

    save: Path | None
    compare: Path | None
    strict: bool
    as_json: bool


@app.command("all")
def every(
    only: Annotated[list[str] | None, typer.Option(help="Only this suite; may be given several times.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="All but this suite; may be given several times.")] = None,
    save: Save = None,
    earlier: Compare = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Run every suite, each in its own process, then list missed targets. server, page and scale are not included.

    Example: python -m benchmarks all --save speed.json
    """
    wanted = [suite_named(name) for name in only] if only else list(SUITES)
    skipped = [suite_named(name) for name in skip or []]
    chosen = [suite for suite in wanted if suite not in skipped]
    _run(chosen, measured_apart, Output(save, earlier, strict, as_json))


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
        output = Output(save, earlier, strict, as_json)
        (outcome,) = _run([suite], lambda suite: measured(suite, rounds), output)
        if outcome.not_run is not None:
            raise UserError(outcome.not_run)

    run.__doc__ = f"{suite.about}\n\nExample: python -m benchmarks {suite.name} --compare speed.json"
    return run


for _suite in SUITES:
    app.command(_suite.name)(_command(_suite))


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file of --save.")],
    earlier: Compare = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of docs/explanation/speed.md.")
    ] = False,
) -> None:
    """Print saved results.

    Example: python -m benchmarks show speed.json --markdown
    """
    results = Results.load(file)
    if as_markdown:
        typer.echo(markdown(results))
        return
    for outcome in results.outcomes:
        _print(outcome)
    then = None if earlier is None else Results.load(earlier)
    _conclude(results, then, [] if then is None else compare(then, results))
    note(describe_machine(results))


@app.command()
def server(
    run: BenchmarkedRun,
    database: Annotated[str, typer.Option(help="sqlite, or postgresql: a temporary server is started.")] = "sqlite",
    kills: Annotated[int, typer.Option(min=0, help="How often the server is killed under load.")] = 20,
    readers: Annotated[int, typer.Option(min=0, max=200, help="Readers who draw boxes at the same time.")] = 50,
    boxes: Annotated[int, typer.Option(min=1, max=1000, help="Boxes that each reader draws.")] = 20,
    pause: Annotated[float, typer.Option(min=0, help="Mean seconds between two boxes of a reader.")] = 1.0,
    requests: Annotated[int, typer.Option(min=0, help="Requests during which memory is measured.")] = 10_000,
    workers: Workers = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the moments at which the server is killed.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure a real server: many readers against one, memory over time, kills under load. Exit code 1 if a target is
    missed.

    Example: python -m benchmarks server demo/tb-quick-model-seed0 --database postgresql
    """
    from benchmarks.server import Order, bench_server

    if database not in ("sqlite", "postgresql"):
        raise UserError(f"--database is sqlite or postgresql, not {database!r}.")
    if importlib.util.find_spec("psutil") is None:
        raise UserError("The server benchmark measures processes, which needs: pip install psutil.")
    order = Order(run, database, kills, readers, boxes, pause, requests, workers, seed)
    title = f"Server, {database}, {workers} worker{'s' if workers > 1 else ''}"
    _print_findings(title, list(bench_server(order, track)), as_json=as_json)


@app.command()
def page(run: BenchmarkedRun, workers: Workers = 2, as_json: Json = False) -> None:
    """Measure the page in Chromium: time until a film is shown, frames while a box is drawn, delay of the live check.
    Exit code 1 if a target is missed.

    Example: python -m benchmarks page demo/tb-quick-model-seed0
    """
    if importlib.util.find_spec("playwright") is None:
        raise UserError("The page benchmark drives a browser, which needs: pip install playwright.")
    from benchmarks.page import bench_page

    with err.status("timing"):
        findings = list(bench_page(run, workers=workers))
    _print_findings("Page", findings, as_json=as_json)


@app.command()
def scale(
    gpu: Annotated[
        float, typer.Option(min=1, help="Films per second that a GPU is assumed to train on; it is not measured here.")
    ] = 500,
    as_json: Json = False,
) -> None:
    """Measure what one film costs on this machine, and plan for NIH, for a hospital and for a billion films.

    Example: python -m benchmarks scale --gpu 800
    """
    from benchmarks.scale import crowds, plans
    from benchmarks.scale_costs import measure_costs

    with err.status("measuring what a film costs"):
        costs = measure_costs()
    planned, simulated = list(plans(costs, gpu)), crowds(costs)
    if as_json:
        lines = {"plans": [asdict(line) for line in planned], "simulated": [asdict(crowd) for crowd in simulated]}
        print_json({"costs": costs.to_json()} | lines)
        return
    rows = [(f"forward, {name}", f"{1e3 * seconds:.1f} ms") for name, seconds in costs.forward.items()]
    rows += [(f"decoding, {name}", f"{1e3 * seconds:.1f} ms") for name, seconds in costs.decoding.items()]
    rows += [
        (f"stage 1, a step, {costs.cores} cores", f"{1e3 * costs.learning:.1f} ms"),
        (f"stages 3 and 4, an epoch, {costs.cores} cores", f"{1e3 * costs.stages_3_and_4:.3f} ms"),
        (f"driver, for a part of {costs.part}", f"{1e3 * costs.handing_out:.1f} ms"),
        ("row of the table", f"{costs.row_bytes:.0f} bytes"),
    ]
    table("A film, on one core unless stated (measured)", ("what", "costs"), rows)
    plan_rows = [(f"{line.plan}: {line.what}", line.figure, line.rests_on) for line in planned]
    table("Plans", ("what", "figure", "rests on"), plan_rows)
    table(
        "One driver and its workers (simulated)",
        ("workers", "films/s", "workers busy", "driver busy"),
        [(f"{c.workers:,}", f"{c.parts_per_second * costs.part:,.0f}", f"{c.busy:.0%}", f"{c.driver:.0%}")
         for c in simulated],
    )  # fmt: skip
    note("Nothing was run at these sizes: see docs/explanation/scale.md for what breaks first, and what then helps.")


def _run(suites: Sequence[Suite], measure: Callable[[Suite], Outcome], output: Output) -> tuple[Outcome, ...]:
    """Measure, print each suite as it ends, save, compare."""
    then = None if output.compare is None else Results.load(output.compare)  # fails before minutes of measuring
    if output.save is not None:
        outside_runs(output.save)
    outcomes = list[Outcome]()
    for number, suite in enumerate(suites, 1):
        err.print(f"{number} of {len(suites)}, {suite.name}: {suite.about}", markup=False, soft_wrap=True)
        with err.status(f"timing {suite.name}"):
            outcomes.append(measure(suite))
        if not output.as_json:
            _print(outcomes[-1])
    results = Results(machine(), tuple(outcomes))
    if output.save is not None:
        results.save(output.save)
    comparisons = [] if then is None else compare(then, results)
    if output.as_json:
        missed = [[suite, *row.key] for suite, row in results.missed]
        compared = [comparison.to_json() for comparison in comparisons]
        print_json(results.to_json() | {"missed": missed, "compared": compared})
    else:
        _conclude(results, then, comparisons)
    if output.strict and _fails(results, comparisons):
        raise typer.Exit(1)
    return results.outcomes


def _print(outcome: Outcome) -> None:
    if outcome.rows:
        table(f"{outcome.suite}, {outcome.seconds:.0f} s", COLUMNS, [cells(row) for row in outcome.rows])
    if outcome.not_run is not None:
        note(f"{outcome.suite}: not run: {outcome.not_run}")


def _conclude(results: Results, then: Results | None, comparisons: Sequence[Comparison]) -> None:
    for difference in [] if then is None else differences(then, results):
        note(difference)
    if comparisons:
        table("Then and now", COMPARED, [compared_cells(comparison) for comparison in comparisons])
    for sentence in shortcomings(results) or ["Every target is met."]:
        note(sentence)


def _fails(results: Results, comparisons: Sequence[Comparison]) -> bool:
    slower = any(comparison.verdict == "slower" for comparison in comparisons)
    return bool(results.missed) or any(outcome.not_run for outcome in results.outcomes) or slower


def _print_findings(title: str, findings: "Sequence[Finding]", *, as_json: bool) -> None:
    """Print each target beside the measured figure; exit with code 1 if one is missed."""
    if as_json:
        print_json([finding.to_json() for finding in findings])
    else:
        rows = [(each.what, each.found, each.promised, "kept" if each.kept else "BROKEN") for each in findings]
        table(title, ("what", "found", "promised", ""), rows)
    if not all(finding.kept for finding in findings):
        raise typer.Exit(1)
