import pytest
import torch

from medgrape.config import BackboneSettings, ModelSettings
from medgrape.model.atlas import Anchors, Atlas, perturbed
from medgrape.model.backbones import build_backbone
from medgrape.model.cam import CamHead, concept_vectors, pool
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import ScoreNormalizer
from medgrape.model.projector import Projector
from oracles import equations


def test_every_projected_patch_has_length_one():
    torch.manual_seed(0)
    projected = Projector(7, 5).patches(torch.randn(2, 7, 3, 4))
    assert projected.shape == (2, 5, 3, 4)
    torch.testing.assert_close(projected.norm(dim=1), torch.ones(2, 3, 4))


def test_the_projection_of_a_patch_does_not_depend_on_other_patches():
    """No batch norm: what a patch becomes depends on nothing but the patch."""
    torch.manual_seed(0)
    projector, features = Projector(7, 5).train(), torch.randn(2, 7, 3, 4)
    alone = projector(features[1, :, 2, 3])
    torch.testing.assert_close(projector.patches(features)[1, :, 2, 3], alone)


def test_prototypes_have_length_one_however_far_they_have_wandered():
    atlas = Atlas(2, 3, 4, background=True)
    atlas.vectors.data.mul_(7.0)
    torch.testing.assert_close(atlas.prototypes.norm(dim=-1), torch.ones(2, 3))
    assert atlas.contrasted.shape == (3, 3, 4)  # ordinary tissue takes part here
    assert atlas.prototypes.shape == (2, 3, 4)  # and nowhere else


def test_concept_vectors_are_features_weighed_by_the_softmax_of_the_raw_map():
    torch.manual_seed(0)
    features, maps = torch.randn(1, 4, 2, 3), torch.randn(1, 2, 2, 3)
    fast = concept_vectors(features, maps)[0]
    for k in range(2):
        slow = equations.concept_vector(maps[0, k].tolist(), features[0].tolist())
        assert fast[k].tolist() == pytest.approx(slow, abs=1e-5)


def test_log_sum_exp_pooling_lies_between_the_mean_and_the_maximum_of_a_map():
    torch.manual_seed(0)
    maps = torch.randn(3, 2, 5, 5)
    smooth = pool(maps, "log-sum-exp", 5.0)
    assert (smooth > pool(maps, "mean")).all()
    assert (smooth < maps.amax(dim=(-2, -1))).all()
    torch.testing.assert_close(pool(maps, "log-sum-exp", 1e-3), pool(maps, "mean"), atol=1e-2, rtol=0)
    torch.testing.assert_close(pool(maps, "log-sum-exp", 500.0), maps.amax(dim=(-2, -1)), atol=1e-2, rtol=0)


def test_a_cam_begins_by_seeing_little():
    assert torch.sigmoid(CamHead(6, 3)(torch.randn(2, 6, 4, 4))).mean() < 0.2


def test_perturbed_copies_lie_near_their_anchor_and_differ():
    anchors = Anchors(torch.randn(2, 10), 16)
    copies = perturbed(anchors()[0].detach(), 50, torch.Generator().manual_seed(1))
    cosines = copies @ anchors()[0].detach()
    assert cosines.min() > 0.98
    assert cosines.std() > 0
    torch.testing.assert_close(copies.norm(dim=-1), torch.ones(50))


def test_standard_scores_are_centred_for_each_prototype_and_scaled_for_each_concept():
    torch.manual_seed(0)
    scores = torch.randn(50, 2, 4) * torch.tensor([[[0.1]], [[3.0]]])[:, 0] + 5.0
    standard = ScoreNormalizer(2, 4)
    torch.testing.assert_close(standard(scores), scores)  # no change before it has seen films
    standard.fit(scores)
    torch.testing.assert_close(standard(scores).mean(dim=0), torch.zeros(2, 4), atol=1e-4, rtol=0)
    torch.testing.assert_close(standard(scores).square().mean(dim=(0, 2)), torch.ones(2))


def test_a_smooth_patch_is_the_mean_of_itself_and_its_neighbours():
    plain, smooth = Projector(7, 5), Projector(7, 5, smooth=True)
    smooth.load_state_dict(plain.state_dict())
    features = torch.randn(1, 7, 4, 5)
    before, after = plain.patches(features)[0], smooth.patches(features)[0]
    torch.testing.assert_close(after[:, 1, 2], before[:, 0:3, 1:4].mean(dim=(1, 2)))
    torch.testing.assert_close(after[:, 0, 0], before[:, 0:2, 0:2].mean(dim=(1, 2)))  # the corner has three neighbours
    torch.testing.assert_close(smooth(torch.ones(2, 7)), plain(torch.ones(2, 7)))  # vectors have no neighbours


def test_a_film_and_its_mirror_image_have_mirrored_maps_where_both_are_read():
    backbone = build_backbone(BackboneSettings(leave_off=2)).eval()
    graph = ConceptGraph(torch.eye(2), 0.1)
    model = Grape(backbone, ModelSettings(prototypes=3, width=4, mirror=True), graph, 2, None).eval()
    film = torch.rand(1, 1, 64, 64)
    with torch.no_grad():
        here, there = model.features(film), model.features(film.flip(-1))
        torch.testing.assert_close(here, there.flip(-1))
        torch.testing.assert_close(here, (backbone(film) + backbone(film.flip(-1)).flip(-1)) / 2)
        (seen, maps), (mirrored, _) = model.predict_with_all_maps(film), model.predict_with_all_maps(film.flip(-1))
        torch.testing.assert_close(seen.logits, mirrored.logits)
        torch.testing.assert_close(maps.cam, model.cam(here))
        assert not torch.allclose(here, backbone(film), atol=1e-3)
