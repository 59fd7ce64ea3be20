"""What is raced against must do the same work: these compare what it finds, and time nothing."""

import pytest
import torch

from benchmarks.head import _head
from benchmarks.head_others import graph_library, one_film_at_a_time
from benchmarks.losses import _Scene
from medgrape.config import Config
from medgrape.model.graph import ConceptGraph


@pytest.mark.parametrize("concepts", [3, 14])
def test_others_heads_find_what_ours_finds_also_on_a_sparse_directed_graph(concepts):
    head, _, found = _head(concepts)
    torch.manual_seed(1)
    graph = ConceptGraph(torch.rand(concepts, concepts), 0.6)
    assert not graph.edges.all()
    for theirs in (graph_library(head, graph, len(found)), one_film_at_a_time(head, graph)):
        torch.testing.assert_close(theirs(found), head(found, graph), atol=1e-5, rtol=1e-5)


def test_loops_over_concepts_find_the_same_loss_and_gradients():
    scene = _Scene(Config())
    ours = [one.clone() for one in scene.stepped(scene.at_once)]
    for theirs in (scene.looped, scene.published):
        for one, other in zip(ours, scene.stepped(theirs), strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)
