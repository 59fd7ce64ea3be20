"""The graph computes what torch computes: every head, every kind of backbone, whatever was done since training."""

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession

from medgrape.config import parse_config
from medgrape.model.backbones import build_backbone
from medgrape.model.evidence import disagreement_maps
from medgrape.model.grape import Grape, grow_head
from medgrape.model.graph import ConceptGraph
from medgrape.runs.onnx_graph import OUTPUTS, build_graph

SIDE, CLOSE = 64, 1e-4
RESNET = {"name": "resnet-18", "pretrained": False, "leave_off": 2}
LITE = {"name": "efficientnet-lite0", "leave_off": 2}


def model_of(backbone=RESNET, learnt_later=0, **model):
    config = parse_config({"backbone": backbone, "model": {"prototypes": 5, "width": 16, **model}})
    torch.manual_seed(0)
    graph = ConceptGraph(torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, 0.4], [0.3, 0.0, 1.0]]), 0.1)
    grape = Grape(build_backbone(config.backbone), config.model, graph, 3, None, learnt_later=learnt_later)
    return grape.eval().requires_grad_(False), config


@torch.no_grad()
def compare(grape, films):
    """Every output of the graph beside torch's."""
    session = InferenceSession(build_graph(grape, SIDE).SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for batch in films:
        found = dict(zip(names, session.run(names, {"films": batch[:, 0].numpy()}), strict=True))
        prediction, maps = grape.predict_with_all_maps(batch)
        patches = grape.patches(batch)
        expected = {
            "logits": prediction.logits, "probabilities": prediction.probabilities, "scores": prediction.scores,
            "mean_maps": maps.mean, "strongest_maps": maps.strongest, "cam_maps": maps.cam, "patches": patches,
            "disagreement_maps": disagreement_maps(patches, grape.atlas.in_use), "features": grape.features(batch),
        }  # fmt: skip
        if prediction.attention is not None:
            expected["attention"] = prediction.attention
        assert set(expected) == set(found) <= set(OUTPUTS)
        for name, values in expected.items():
            scale = max(1.0, float(values.abs().max()))  # an untrained backbone's features are large
            np.testing.assert_allclose(found[name], values.numpy(), atol=CLOSE * scale, rtol=0, err_msg=name)


def films(*counts):
    return [torch.rand(count, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(count)) for count in counts]


SLOWLY = [pytest.param(head, marks=pytest.mark.slow) for head in ("linear", "mlp", "ml-gcn", "add-gcn")]


@pytest.mark.parametrize("head", ["gat", *SLOWLY])
def test_every_head_answers_as_it_does_in_torch_for_any_number_of_films(head):
    compare(model_of(head=head, standardise=True)[0], films(1, 2, 7))


@pytest.mark.slow
@pytest.mark.parametrize(
    "backbone",
    [
        pytest.param(LITE, id="halving layers", marks=pytest.mark.slow),
        pytest.param(LITE | {"last_stride": False}, id="dilated layers"),
    ],
)
def test_layers_that_are_written_otherwise_for_training_give_the_same_maps(backbone):
    compare(model_of(backbone)[0], films(2))


@pytest.mark.slow
def test_smooth_maps_and_mirror_images_are_part_of_the_graph():
    compare(model_of(smooth=True, mirror=True)[0], films(2))


@pytest.mark.slow
def test_discarded_prototypes_are_in_no_map_and_the_head_gets_their_usual_scores():
    grape, _ = model_of()
    kept = torch.ones(3, 5, dtype=torch.bool)
    kept[0, :4] = kept[2, 1] = False
    grape.atlas.curated(kept, torch.full((3, 5), 0.25))
    compare(grape, films(2))


@pytest.mark.parametrize(
    "trained", [pytest.param(False, id="silent", marks=pytest.mark.slow), pytest.param(True, id="trained")]
)
def test_a_concept_learnt_later_and_a_head_that_grew_are_exported(trained):
    grape, config = model_of(learnt_later=1)
    grow_head(grape, config.model, torch.full((4, 4), 0.5), 3)
    if trained:
        torch.nn.init.normal_(grape.head.added.readout.layers[-1].weight)
    compare(grape.eval().requires_grad_(False), films(2))
