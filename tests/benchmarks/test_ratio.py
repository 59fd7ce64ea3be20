import time

from medgrape.benchmarks.ratio import Ratio, race


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
