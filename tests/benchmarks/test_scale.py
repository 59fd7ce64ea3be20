"""Plans for many films: what is simulated behaves as one driver and its workers do."""

import pytest

from benchmarks.scale import crowds, plans, simulate
from benchmarks.scale_costs import Costs

COSTS = Costs(
    cores=2,
    forward={"torch": 0.1, "fp32": 0.05, "int8": 0.02},
    decoding={"PNG, 1024 px": 0.01, "DICOM, 2048 px": 0.03},
    learning=0.2,
    stages_3_and_4=1e-4,
    handing_out=0.01,
    part=500,
    row_bytes=200.0,
    cached_bytes=50_000,
    score_bytes=5600,
)


def test_few_workers_are_always_busy_and_many_wait_for_the_driver():
    few, many = (simulate(workers, 10.0, 0.01, 40 * workers) for workers in (10, 4000))
    assert few.parts_per_second == pytest.approx(1.0, rel=0.05)
    assert few.busy > 0.95
    assert many.parts_per_second == pytest.approx(100.0, rel=0.05)  # what the driver can write
    assert many.driver > 0.95
    assert many.busy < 0.3


def test_a_part_of_which_nothing_waits_takes_what_it_takes():
    alone = simulate(1, 10.0, 0.5, 8, uneven=0.0)
    assert alone.parts_per_second == pytest.approx(8 / (8 * 10.0 + 0.5))


def test_no_simulation_is_faster_than_its_workers_or_its_driver():
    for workers in (1, 3, 50, 700):
        crowd = simulate(workers, 5.0, 0.02, 20 * workers)
        assert crowd.parts_per_second <= min(1 / 0.02, workers / (5.0 * 0.9)) + 1e-9
        assert crowd.busy <= 1.0
        assert crowd.driver <= 1.0


def test_every_line_of_a_plan_says_what_it_rests_on():
    lines = list(plans(COSTS, gpu=500))
    assert {one.plan.split(",")[0] for one in lines} == {"NIH", "hospital", "1"}
    assert all(one.rests_on.startswith(("measured", "assumed", "arithmetic")) for one in lines)


def test_a_film_that_costs_twice_as_much_takes_twice_as_long():
    def hours(costs):
        return float(next(one.figure for one in plans(costs, 500) if one.what == "hours of one core").replace(",", ""))

    from dataclasses import replace

    dearer = replace(COSTS, forward=COSTS.forward | {"int8": 0.07})
    assert hours(dearer) == pytest.approx(2 * hours(COSTS), rel=1e-3)


def test_more_workers_never_read_fewer_films():
    rates = [one.parts_per_second for one in crowds(COSTS)]
    assert rates == sorted(rates)
