"""The methods that GRAPE is compared with, part by part."""

import pytest
import torch

from medgrape.baselines.methods import (
    HEAD_PACE,
    BlackBox,
    ConceptBottleneck,
    PipNet,
    alignment_loss,
    classes_loss,
    presence,
    presence_loss,
)
from medgrape.config import BackboneSettings
from medgrape.model.backbones import build_backbone
from oracles import pip_net as slow


@pytest.fixture(scope="module")
def backbone():
    return build_backbone(BackboneSettings(pretrained=False, leave_off=1))


@pytest.fixture
def features(backbone):
    return torch.randn(4, backbone.features, 3, 3, generator=torch.Generator().manual_seed(0))


def test_a_black_box_has_the_map_of_its_answer_for_every_finding(backbone, features):
    model = BlackBox(backbone, concepts=3, classes=2).eval()
    logits, maps = model.classify(features)
    every = model.classifier(features)
    torch.testing.assert_close(logits, every.mean(dim=(-2, -1)))
    for film, answer in enumerate(logits.argmax(dim=1)):
        assert all(torch.equal(one, every[film, answer]) for one in maps[film])


def test_the_classes_of_a_bottleneck_follow_from_the_findings_alone(backbone, features):
    """Features that move, but leave every finding's logit where it was, change no class."""
    model = ConceptBottleneck(backbone, concepts=3, classes=2).eval()
    logits, maps = model.classify(features)
    unseen = torch.linalg.svd(model.findings.maps.weight.detach().flatten(1)).Vh[-1]  # a direction that no map hears
    moved, moved_maps = model.classify(features + 7.0 * unseen[:, None, None])
    torch.testing.assert_close(moved, logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(moved_maps, maps, atol=1e-5, rtol=0)
    torch.testing.assert_close(model.bottleneck(maps), maps.mean(dim=(-2, -1)))


def test_films_of_unknown_class_give_no_loss():
    logits = torch.randn(3, 2)
    known, weights = torch.tensor([1, -100, 0]), torch.ones(2)
    kept = classes_loss(logits[[0, 2]], known[[0, 2]], weights, -100)
    assert classes_loss(logits, known, weights, -100) == pytest.approx(float(kept))
    assert classes_loss(logits, torch.full((3,), -100), weights, -100) == 0.0


def parts_of(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(dim=1)


def test_pip_nets_losses_are_those_of_its_paper():
    one, other = parts_of(2, 4, 2, 3), parts_of(2, 4, 2, 3, seed=1)
    expected = slow.alignment(one.flatten(2).tolist(), other.flatten(2).tolist())
    assert float(alignment_loss(one, other)) == pytest.approx(expected, rel=1e-5)
    there = presence(one)
    assert there.tolist() == [[max(patches) for patches in film] for film in one.flatten(2).tolist()]
    assert float(presence_loss(there)) == pytest.approx(slow.presence(there.tolist()), rel=1e-5)


def test_the_alignment_loss_is_zero_only_for_equal_parts():
    sure = torch.nn.functional.one_hot(torch.tensor([[0, 1], [2, 0]]), 3).float().permute(2, 0, 1)[None]
    assert float(alignment_loss(sure, sure)) == pytest.approx(0.0, abs=1e-6)
    assert float(alignment_loss(sure, sure.roll(1, dims=1))) > 10


def test_each_view_gets_gradients_from_the_other_only():
    one, other = parts_of(1, 3, 2, 2).requires_grad_(), parts_of(1, 3, 2, 2, seed=1).requires_grad_()
    alignment_loss(one, other).backward()
    same = (one.detach() * other.detach()).sum(dim=1, keepdim=True)
    torch.testing.assert_close(one.grad, -other.detach() / same / 8)


def test_weights_from_parts_to_classes_are_never_negative(backbone, features):
    model = PipNet(backbone, concepts=2, classes=3, parts=4).eval()
    with torch.no_grad():
        model.votes[0, 0] = -1.0
    assert (model.weights >= 0).all()
    present = presence(model.which_part(features))
    expected = [slow.votes(film, (HEAD_PACE * model.votes).tolist()) for film in present.tolist()]
    torch.testing.assert_close(model.classes(present), torch.tensor(expected), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model.which_part(features).sum(dim=1), torch.ones(4, 3, 3))


def test_faint_parts_count_in_training_but_not_in_reading(backbone):
    model = PipNet(backbone, concepts=1, classes=2, parts=0)
    faint = torch.zeros(1, backbone.features, 1, 1)
    faint[0, 0] = 9.0  # one sure part, all others below a tenth
    learning, reading = model.train().classify(faint).logits, model.eval().classify(faint).logits
    assert not torch.equal(learning, reading)
    only = torch.zeros(1, backbone.features)
    only[0, 0] = faint.softmax(dim=1)[0, 0, 0, 0]
    torch.testing.assert_close(reading, model.classes(only))


def test_a_concepts_map_is_the_sum_of_correlated_parts(backbone):
    model = PipNet(backbone, concepts=2, classes=2, parts=3)
    shown = torch.tensor([[1.0, 0.0], [1.0, torch.nan], [0.0, 1.0], [0.0, 0.0]])
    present = torch.stack([shown[:, 0], 1 - shown[:, 0], torch.full((4,), 0.5)], dim=1)
    model.name_parts(present, shown)
    torch.testing.assert_close(model.goes_with[0], torch.tensor([1.0, 0.0, 0.0]))
    assert model.goes_with[1, 2] == 0.0, "a part that is always there goes with nothing"
    maps = model.eval().classify(torch.randn(1, backbone.features, 2, 2)).maps
    assert maps.shape == (1, 2, 2, 2)
