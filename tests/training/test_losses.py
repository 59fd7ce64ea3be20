import pytest
import torch
import torch.nn.functional as F

from medgrape.model.cam import pool
from medgrape.training.losses import (
    alignment_loss,
    box_class_loss,
    box_loss,
    concept_loss,
    contrastive_loss,
    detection_loss,
    dispersion_loss,
    masked_similarity,
    pointing_loss,
    soft_similarity,
)
from oracles import equations


def unit(*shape, seed=0):
    return F.normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_stage_one_is_cross_entropy_on_averaged_maps():
    maps, labels = torch.randn(1, 3, 2, 2), torch.tensor([[1.0, 0.0, 1.0]])
    slow = equations.stage_one(maps[0].tolist(), labels[0].tolist())
    assert float(concept_loss(pool(maps, "mean"), labels, torch.ones(3))) == pytest.approx(slow, abs=1e-5)


def test_top_pooling_averages_the_highest_tenth_of_the_patches():
    maps = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert pool(maps, "top").tolist() == [[14.5]]  # two of sixteen


def test_unknown_labels_give_no_loss_and_no_gradient():
    logits = torch.randn(2, 2, requires_grad=True)
    concept_loss(logits, torch.tensor([[1.0, torch.nan], [0.0, torch.nan]]), torch.ones(2)).backward()
    assert (logits.grad[:, 1] == 0).all()
    assert (logits.grad[:, 0] != 0).all()


def test_the_mean_loss_of_two_halves_is_the_loss_of_the_batch():
    """What several processes rely on."""
    logits, labels = torch.randn(8, 3), torch.randint(0, 2, (8, 3)).float()
    labels[0, 0] = torch.nan
    whole = concept_loss(logits, labels, torch.ones(3))
    halves = [concept_loss(logits[part], labels[part], torch.ones(3)) for part in (slice(0, 4), slice(4, 8))]
    torch.testing.assert_close(sum(halves) / 2, whole)


def test_only_complete_boxes_give_gradients():
    maps = torch.zeros(2, 1, 2, 2, requires_grad=True)
    overlap = torch.zeros(2, 1, 2, 2)
    overlap[0, 0, 0, 1] = 0.9
    box_loss(maps, overlap, torch.tensor([[True], [False]])).backward()
    assert maps.grad[0, 0, 0, 1] < 0  # seen more here
    assert (maps.grad[0, 0, 1] > 0).all()  # and less there
    assert (maps.grad[1] == 0).all()


def test_a_lesion_between_four_patches_is_a_positive_target():
    maps = torch.zeros(1, 1, 3, 3, requires_grad=True)
    overlap = torch.zeros(1, 1, 3, 3)
    overlap[0, 0, 0:2, 0:2] = 0.25
    box_loss(maps, overlap, torch.tensor([[True]])).backward()
    assert (maps.grad[0, 0, 0:2, 0:2] < 0).all()
    assert (maps.grad[0, 0, 2] > 0).all()


def test_soft_assignment_and_contrast_follow_the_paper():
    vectors, prototypes = unit(4, 6, seed=1), unit(3, 5, 6, seed=2)
    fast = soft_similarity(vectors, prototypes, 5.0)
    for n in range(4):
        slow = [equations.soft_similarity(vectors[n].tolist(), prototypes[k].tolist(), 5.0) for k in range(3)]
        assert fast[n].tolist() == pytest.approx(slow, abs=1e-5)
    truth = torch.tensor([0, 2, 1, 1])
    slow = [equations.contrastive(fast[n].tolist(), int(truth[n]), 10.0, 0.1) for n in range(4)]
    assert float(contrastive_loss(fast, truth, 10.0, 0.1)) == pytest.approx(sum(slow) / 4, abs=1e-5)


def test_the_margin_raises_the_true_concepts_logit_and_no_other():
    similarity, truth = torch.tensor([[0.2, 0.5]]), torch.tensor([0])
    raised = F.cross_entropy(torch.tensor([[10 * (0.2 + 0.1), 10 * 0.5]]), truth)
    torch.testing.assert_close(contrastive_loss(similarity, truth, 10.0, 0.1), raised)


def test_alignment_follows_the_paper():
    prototypes, anchors = unit(3, 5, 6, seed=3), unit(3, 6, seed=4)
    slow = equations.alignment(prototypes.tolist(), anchors.tolist())
    assert float(alignment_loss(prototypes, anchors)) == pytest.approx(slow, abs=1e-6)


def test_dispersion_penalises_collapsed_prototypes_only():
    collapsed = unit(1, 1, 8).expand(2, 5, 8)
    assert float(dispersion_loss(collapsed)) == pytest.approx(0.25, abs=1e-5)
    assert float(dispersion_loss(torch.eye(5)[None])) == 0.0
    assert float(dispersion_loss(unit(3, 1, 8))) == 0.0  # a single prototype has no neighbour


def test_a_sample_gives_no_gradient_to_prototypes_with_high_variance():
    prototypes = torch.stack([torch.eye(4)[:2], torch.tensor([[0.6, 0.8, 0, 0], [0.8, 0.6, 0, 0]])]).requires_grad_()
    vector = torch.eye(4)[:1].clone().requires_grad_()  # cosines 1 and 0 with concept 0, 0.6 and 0.8 with concept 1
    masked_similarity(vector, prototypes, 5.0, mask_above=0.05).sum().backward()
    assert (prototypes.grad[0] == 0).all()  # variance 0.25
    assert (prototypes.grad[1] != 0).any()  # variance 0.01
    assert (vector.grad != 0).any()
    torch.testing.assert_close(
        masked_similarity(vector, prototypes, 5.0, 0.05), soft_similarity(vector, prototypes, 5.0)
    )


def test_masked_similarity_has_the_gradients_of_two_separate_passes():
    vectors, prototypes = unit(7, 6, seed=5).requires_grad_(), unit(3, 5, 6, seed=6).requires_grad_()
    masked_similarity(vectors, prototypes, 5.0, mask_above=0.1).square().sum().backward()
    fast = vectors.grad.clone(), prototypes.grad.clone()

    vectors.grad = prototypes.grad = None
    cosines = torch.einsum("nd,gmd->ngm", vectors.detach(), prototypes.detach())
    unsure = cosines.var(dim=-1, correction=0) > 0.1
    assert 0 < unsure.sum() < unsure.numel()
    learning, still = (soft_similarity(vectors, those, 5.0) for those in (prototypes, prototypes.detach()))
    torch.where(unsure, still, learning).square().sum().backward()

    torch.testing.assert_close(fast, (vectors.grad, prototypes.grad))


def test_without_rivals_a_box_gives_other_findings_no_gradient():
    maps = torch.zeros(1, 2, 2, 2, requires_grad=True)
    overlap = torch.zeros(1, 2, 2, 2)
    overlap[0, 0, 0, 0] = 1.0
    box_loss(maps, overlap, torch.tensor([[True, True]]), rivals=False).backward()
    assert maps.grad[0, 0, 0, 0] < 0
    assert maps.grad[0, 1, 0, 0] == 0
    assert (maps.grad[0, 1].flatten()[1:] > 0).all()


def test_the_box_class_loss_is_cross_entropy_of_means_inside_the_box():
    maps = torch.randn(1, 3, 2, 2, requires_grad=True)
    overlap = torch.zeros(1, 3, 2, 2)
    overlap[0, 1, 0, 0], overlap[0, 1, 0, 1] = 1.0, 0.5
    means = [(maps[0, k, 0, 0] + 0.5 * maps[0, k, 0, 1]) / 1.5 for k in range(3)]
    slow = -2.0 * torch.log(means[1].exp() / (means[0].exp() + means[1].exp()))
    loss = box_class_loss(maps, overlap, torch.tensor([1.0, 2.0, 0.0]))  # nobody drew a box of the third
    torch.testing.assert_close(loss, slow)
    loss.backward()
    assert maps.grad.isfinite().all()
    assert (maps.grad[0, 2] == 0).all()


def test_films_without_visible_boxes_give_no_box_class_loss():
    maps = torch.randn(2, 2, 3, 3, requires_grad=True)
    overlap = torch.zeros(2, 2, 3, 3)
    overlap[1, 0, 0, 0] = 0.01
    loss = box_class_loss(maps, overlap, torch.ones(2))
    loss.backward()
    assert loss.item() == 0.0
    assert (maps.grad == 0).all()


def test_pointing_raises_findings_above_normal_tissue_in_their_own_map():
    means = torch.tensor([[0.5, 0.9], [0.2, 0.3], [0.4, 0.1]], requires_grad=True)
    truth = torch.tensor([0, 2, 2])  # one finding of the first concept, two patches of ordinary tissue
    loss = pointing_loss(means, truth, torch.tensor([1.0, 1.0, 1.0]))
    tissue = 15 * (torch.exp(torch.tensor(4.0)) + torch.exp(torch.tensor(8.0)))
    torch.testing.assert_close(
        loss, -torch.log(torch.exp(torch.tensor(10.0)) / (torch.exp(torch.tensor(10.0)) + tissue)) / 3
    )
    loss.backward()
    assert means.grad[0, 0] < 0
    assert (means.grad[1:, 0] > 0).all()
    assert (means.grad[:, 1] == 0).all()
    assert float(pointing_loss(means.detach(), torch.tensor([0, 1, 1]), torch.ones(3))) == 0.0


def test_detection_compares_the_peaks_of_every_film_with_a_finding_and_every_film_without():
    maps = torch.tensor([[0.3, 0.1], [0.5, 0.2], [0.1, 0.4]]).view(3, 1, 1, 2).requires_grad_()
    labels = torch.tensor([[1.0], [0.0], [torch.nan]])
    loss = detection_loss(maps, labels)
    first, second = (torch.logsumexp(20 * maps[film].flatten(), 0) for film in (0, 1))
    torch.testing.assert_close(loss, torch.log(1 + torch.exp(second - first)))
    loss.backward()
    assert (maps.grad[0] < 0).all()
    assert (maps.grad[1] > 0).all()
    assert (maps.grad[2] == 0).all()  # nobody knows whether it shows the finding


def test_detection_averages_over_concepts_that_have_a_pair_of_films():
    maps = torch.rand(4, 3, 2, 2)
    labels = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    alone = [float(detection_loss(maps[:, [place]], labels[:, [place]])) for place in range(3)]
    assert alone[1] == 0.0  # all films show it
    torch.testing.assert_close(float(detection_loss(maps, labels)), (alone[0] + alone[2]) / 2)
