"""Comparison of two methods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medgrape.evaluation.statistics import compare, holm, paired_t_test


def share(sums):
    """Hits of all."""
    return sums[..., 0] / sums[..., 1]


def counts(hits):
    """``hits``: seeds x patients, one film each."""
    hits = np.asarray(hits, dtype=np.float64)
    return np.stack([hits, np.ones_like(hits)], axis=-1)


def test_a_method_that_is_always_right_beats_one_that_never_is():
    result = compare(counts(np.ones((3, 30))), counts(np.zeros((3, 30))), share)
    assert result.difference == 1.0
    assert (result.interval.low, result.interval.high) == (1.0, 1.0)
    assert result.permutation < 0.01
    assert result.t_test is None, "every seed says the same: a t-test has nothing to go by"


def test_a_method_does_not_differ_from_itself():
    hits = counts(np.random.default_rng(0).integers(2, size=(4, 40)))
    result = compare(hits, hits, share)
    assert result.difference == 0.0
    assert result.permutation == 1.0


def test_two_random_methods_differ_significantly_no_more_often_than_the_level():
    chance = np.random.default_rng(1)
    p = [
        compare(
            *(counts(chance.integers(2, size=(2, 40))) for _ in range(2)), share, seed=trial, rounds=199
        ).permutation
        for trial in range(120)
    ]
    assert np.mean(np.array(p) <= 0.1) < 0.2


def test_the_permutation_test_agrees_with_the_count_over_all_swaps():
    ours, theirs = np.array([[1, 1, 1, 1, 0, 1.0]]), np.array([[0, 0, 1, 0, 0, 1.0]])
    swaps = (np.arange(64)[:, None] >> np.arange(6)) & 1
    differences = np.abs(np.where(swaps, theirs - ours, ours - theirs).mean(axis=1))
    exact = np.mean(differences >= abs((ours - theirs).mean()) - 1e-12)
    result = compare(counts(ours), counts(theirs), share, rounds=4000).permutation
    assert result == pytest.approx(exact, abs=0.03)


def test_the_t_test_agrees_with_the_paired_test_of_scipy():
    ours, theirs = np.array([0.81, 0.84, 0.79, 0.9, 0.86]), np.array([0.7, 0.75, 0.8, 0.77, 0.72])
    assert paired_t_test(ours - theirs) == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)


def test_a_single_seed_has_no_t_test_and_a_single_patient_no_interval():
    result = compare(counts([[1.0]]), counts([[0.0]]), share)
    assert (result.t_test, result.interval, result.permutation) == (None, None, None)


def test_holms_correction_agrees_with_a_count_by_hand():
    assert holm([0.01, 0.04, None, 0.03]) == [0.03, pytest.approx(0.06), None, pytest.approx(0.06)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(values):
    corrected = holm(values)
    assert all(after >= before for before, after in zip(values, corrected, strict=True))
    assert all(0 <= after <= 1 for after in corrected)
    assert sorted(corrected) == [corrected[place] for place in np.argsort(values, kind="stable")]
