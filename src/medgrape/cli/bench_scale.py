"""``medgrape bench scale``: what a film costs here, and what follows for more films than are here."""

from typing import Annotated

import typer

from medgrape.cli.console import err, note, print_json, table
from medgrape.cli.options import Json


def scale(
    gpu: Annotated[
        float, typer.Option(min=1, help="Films a second that a GPU is assumed to learn from: nothing here measures it.")
    ] = 500,
    as_json: Json = False,
) -> None:
    """Measure what one film costs on this machine, and plan for NIH, for a hospital and for a billion films.

    Example: medgrape bench scale --gpu 800
    """
    from dataclasses import asdict

    from medgrape.benchmarks.scale import crowds, plans
    from medgrape.benchmarks.scale_costs import measure_costs

    with err.status("measuring what a film costs"):
        costs = measure_costs()
    planned, simulated = list(plans(costs, gpu)), crowds(costs)
    if as_json:
        told = {"costs": costs.to_json(), "plans": [asdict(one) for one in planned]}
        print_json(told | {"simulated": [asdict(one) for one in simulated]})
        return
    rows = [(f"forward, {name}", f"{1e3 * one:.1f} ms") for name, one in costs.forward.items()]
    rows += [(f"decoding, {name}", f"{1e3 * one:.1f} ms") for name, one in costs.decoding.items()]
    rows += [
        (f"stage 1, a step, {costs.cores} cores", f"{1e3 * costs.learning:.1f} ms"),
        (f"stages 3 and 4, an epoch, {costs.cores} cores", f"{1e3 * costs.stages_3_and_4:.3f} ms"),
        (f"driver, for a part of {costs.part}", f"{1e3 * costs.handing_out:.1f} ms"),
        ("row of the table", f"{costs.row_bytes:.0f} bytes"),
    ]
    table("A film, on one core unless said otherwise (measured)", ("what", "costs"), rows)
    table("Plans", ("what", "figure", "rests on"), [(f"{p.plan}: {p.what}", p.figure, p.rests_on) for p in planned])
    table(
        "One driver and its workers (simulated)",
        ("workers", "films/s", "workers busy", "driver busy"),
        [(f"{c.workers:,}", f"{c.parts_per_second * costs.part:,.0f}", f"{c.busy:.0%}", f"{c.driver:.0%}")
         for c in simulated],
    )  # fmt: skip
    note("Nothing was run at these sizes: see docs/explanation/scale.md for what breaks first, and what then helps.")
