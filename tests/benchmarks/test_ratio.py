import time

import pytest

from benchmarks.ratio import Measured, Ratio, race


def test_a_cost_is_met_when_it_stays_below_and_a_gain_when_it_reaches_its_target():
    assert Ratio("reading", "Pillow", 1.2, 1.0, 1.25).met
    assert not Ratio("reading", "Pillow", 1.3, 1.0, 1.25).met
    gain = Ratio("cache", "decoding", 0.01, 1.0, 20, at_most=False)
    assert gain.met
    assert gain.value == 100
    assert gain.to_json()["met"] is True


def test_the_slower_of_two_is_found_slower():
    quick, slow = race(lambda: None, lambda: time.sleep(0.005), rounds=3)
    assert slow > quick
    assert len(quick.rounds) == len(slow.rounds) == 3


def test_each_goes_first_as_often_as_the_other():
    order = []
    race(lambda: order.append("ours"), lambda: order.append("theirs"), rounds=2)
    assert order[2:] == ["ours", "theirs", "theirs", "ours"]  # after the warm-up


def test_a_machine_that_was_slow_for_a_moment_disturbs_no_ratio_since_rounds_are_compared_with_themselves():
    ours, theirs = Measured([1.0, 10.0, 1.0]), Measured([2.0, 20.0, 2.0])
    ratio = Ratio("ours", "theirs", ours, theirs, 0.5)
    assert ratio.value == 0.5
    assert ratio.spread == (0.5, 0.5)


def test_noise_is_the_whole_range_of_a_few_rounds_and_the_middle_half_of_many():
    few = Ratio("a", "b", Measured([1.0, 2.0, 9.0]), Measured([1.0] * 3), 1)
    many = Ratio("a", "b", Measured([float(n) for n in range(1, 14)]), Measured([1.0] * 13), 1)
    assert few.spread == (1.0, 9.0)
    assert many.spread == (4.0, 10.0)


def test_every_round_is_compared_with_a_promise_and_rounds_that_do_not_belong_together_with_nothing():
    assert Ratio("drawing", "a clock", Measured([1.0, 3.0, 2.0]), 1.0, 1.0).spread == (1.0, 3.0)
    assert Ratio("ours", "theirs", Measured([1.0, 3.0, 2.0]), Measured([1.0]), 1.0).spread == (2.0, 2.0)


def test_a_measured_figure_is_the_median_of_its_rounds():
    assert Measured([3.0, 1.0, 2.0]) == pytest.approx(2.0)
