import pytest
import torch
from torch.nn.functional import cosine_similarity

from medgrape.evaluation.dispersion import dispersion


def slow(prototypes):
    within, between = [], []
    for k, own in enumerate(prototypes):
        for first in range(len(own)):
            within += [float(cosine_similarity(own[first], own[n], dim=0)) for n in range(first + 1, len(own))]
        for other in prototypes[k + 1 :]:
            between += [float(cosine_similarity(a, b, dim=0)) for a in own for b in other]
    return sum(within) / len(within), sum(between) / len(between)


def test_mean_cosines_agree_with_a_loop_over_all_pairs():
    prototypes = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0)).double() + 0.3
    within, between = slow(prototypes)
    result = dispersion(prototypes)
    assert result.within == pytest.approx(within)
    assert result.between == pytest.approx(between)
    assert result.within == pytest.approx(sum(result.per_concept) / 3)


def test_prototypes_that_are_one_vector_are_reported_as_collapsed():
    result = dispersion(torch.tensor([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 1.0], [0.0, 3.0]]]))
    assert result.within == pytest.approx(1)
    assert result.between == pytest.approx(0)
    assert result.collapsed


def test_prototypes_at_right_angles_are_not_collapsed():
    result = dispersion(torch.eye(4).reshape(2, 2, 4))
    assert result.per_concept == (0, 0)
    assert not result.collapsed


def test_a_single_prototype_or_a_single_concept_has_no_pairs_to_compare():
    assert dispersion(torch.eye(2).reshape(2, 1, 2)).within is None
    assert dispersion(torch.eye(2).reshape(1, 2, 2)).between is None
