"""Edges can be taken out of the graph, to see what each is worth."""

import pytest
import torch

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads import build_head
from medgrape.model.heads.gat import GraphAttention
from medgrape.training.films import TrainingError
from medgrape.training.run import TrainingJob, train
from small_settings import small

TOGETHER = torch.tensor([[1.0, 0.6, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_a_cut_edge_is_gone_and_the_others_stay():
    whole, cut = ConceptGraph(TOGETHER, 0.1), ConceptGraph(TOGETHER, 0.1, [(0, 1)])
    assert (whole.edges.int() - cut.edges.int()).nonzero().tolist() == [[0, 1]]
    torch.testing.assert_close(cut.weights[0], torch.tensor([1.0, 0.0, 0.0]))
    torch.testing.assert_close(cut.weights[1], whole.weights[1])


@pytest.mark.parametrize("head", ["gat", "ml-gcn", "add-gcn"])
def test_a_concept_without_any_edge_gives_finite_logits_and_gradients(head):
    graph = ConceptGraph(TOGETHER, 0.1, [(2, 2)])
    built = build_head(head, 3, 4, 2, 0.0)
    scores = torch.randn(5, 3, 4, requires_grad=True)
    logits = built(scores, graph)
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert torch.isfinite(scores.grad).all()


def test_a_concept_without_edges_gives_zeros_and_does_not_change_the_attention_of_others():
    layer, nodes = GraphAttention(4, 6, 2), torch.randn(2, 3, 4)
    whole, cut = ConceptGraph(TOGETHER, 0.1).edges, ConceptGraph(TOGETHER, 0.1, [(2, 2)]).edges
    heard, before = layer(nodes, cut), layer(nodes, whole)
    assert (heard[:, 2] == 0).all()
    torch.testing.assert_close(heard[:, :2], before[:, :2])
    assert (layer.with_weights(nodes, cut)[1][:, :, 2] == 0).all()


def test_an_edge_is_named_by_its_source_and_its_target(drawn_dataset, tmp_path):
    run = train(TrainingJob(small(model={"cut": ["active_tb -> active_tb"]}), drawn_dataset, tmp_path / "run"))
    from medgrape.runs.checkpoint import load_run

    edges = load_run(run).run.model.graph.edges
    assert not edges[0, 0]
    assert edges[1, 1]


@pytest.mark.parametrize(
    ("edge", "message"), [("active_tb", "takes edges such as"), ("activ_tb -> obsolete_tb", "did you mean|active_tb")]
)
def test_an_edge_that_is_none_is_refused(edge, message, drawn_dataset, tmp_path):
    with pytest.raises(TrainingError, match=message):
        train(TrainingJob(small(model={"cut": [edge]}), drawn_dataset, tmp_path / "run"))
