import warnings

import pytest
import torch

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads import build_head
from medgrape.model.heads.base import Head
from medgrape.model.heads.gat import GraphAttention
from oracles import equations

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its import alone
    from torch_geometric.nn import GATConv

HEADS = ("linear", "mlp", "gat", "ml-gcn", "add-gcn")


@pytest.fixture
def chain():
    """Concept 0 receives messages from 1; the others only from themselves."""
    probability = torch.tensor([[1.0, 0.6, 0.0], [0.05, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return ConceptGraph(probability, tau=0.1)


@pytest.mark.parametrize(("name", "count"), [("gat", 43_587), ("linear", 903), ("mlp", 47_235)])
def test_heads_have_exactly_as_many_parameters_as_the_paper_says(name, count):
    head = build_head(name, concepts=3, prototypes=100, classes=3, dropout=0.1)
    assert sum(weights.numel() for weights in head.parameters()) == count


@pytest.mark.parametrize("name", HEADS)
def test_every_head_keeps_the_protocol_and_treats_each_film_separately(name, chain):
    torch.manual_seed(0)
    head = build_head(name, 3, 5, 4, 0.5).eval()
    assert isinstance(head, Head)
    scores = torch.randn(6, 3, 5)
    together = head(scores, chain)
    assert together.shape == (6, 4)
    torch.testing.assert_close(torch.cat([head(film[None], chain) for film in scores]), together)


@pytest.mark.parametrize("name", ["gat", "add-gcn"])
def test_the_attention_of_every_concept_sums_to_one(name, chain):
    attention = build_head(name, 3, 5, 4, 0.0).eval().classify(torch.rand(2, 3, 5), chain).attention
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(2, 3))
    if name == "gat":
        assert (attention[:, ~chain.edges] == 0).all()


@pytest.mark.parametrize("name", ["linear", "mlp", "ml-gcn"])
def test_heads_without_attention_return_none(name, chain):
    assert build_head(name, 3, 5, 4, 0.0).classify(torch.rand(1, 3, 5), chain).attention is None


@pytest.mark.parametrize("seed", range(20))
def test_graph_attention_equals_an_independent_implementation_on_random_directed_graphs(seed):
    torch.manual_seed(seed)
    concepts = int(torch.randint(1, 15, ()))
    edges = (torch.rand(concepts, concepts) < 0.3) | torch.eye(concepts, dtype=torch.bool)
    ours = GraphAttention(7, 4, heads=3)
    theirs = GATConv(7, 4, heads=3, negative_slope=0.2, bias=False, add_self_loops=False)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.transform.weight)
        theirs.att_dst.copy_(ours.listener[None])
        theirs.att_src.copy_(ours.speaker[None])
    nodes = torch.randn(concepts, 7)
    listener, speaker = edges.nonzero(as_tuple=True)
    expected = torch.nn.functional.elu(theirs(nodes, torch.stack([speaker, listener])))
    torch.testing.assert_close(ours(nodes[None], edges)[0], expected, atol=1e-5, rtol=0)


def test_graph_attention_follows_the_paper_line_by_line(chain):
    torch.manual_seed(3)
    layer = GraphAttention(5, 4, heads=1)
    nodes = torch.randn(3, 5)
    a = torch.cat([layer.listener[0], layer.speaker[0]]).tolist()
    heard, alphas = equations.graph_attention(nodes.tolist(), chain.edges.tolist(), layer.transform.weight.tolist(), a)
    torch.testing.assert_close(layer(nodes[None], chain.edges)[0], torch.tensor(heard), atol=1e-5, rtol=0)
    attention = layer.with_weights(nodes[None], chain.edges)[1]
    torch.testing.assert_close(attention[0, 0], torch.tensor(alphas), atol=1e-5, rtol=0)


def test_a_concept_receives_messages_from_its_neighbours_only(chain):
    torch.manual_seed(4)
    layer = GraphAttention(5, 8, heads=2)
    nodes = torch.randn(1, 3, 5)
    before = layer(nodes, chain.edges)

    nodes[0, 1] += 1.0  # disturb concept 1: only 0 and 1 itself listen to it
    moved = (layer(nodes, chain.edges) - before).abs().amax(dim=-1)[0] > 1e-6

    assert moved.tolist() == [True, True, False]


def test_the_graph_matters_to_the_answer():
    """The authors' published head answers the same with and without neighbours."""
    torch.manual_seed(5)
    head = build_head("gat", 3, 10, 3, 0.0).eval()
    scores = torch.randn(4, 3, 10)
    alone = ConceptGraph(torch.eye(3), tau=0.1)
    everyone = ConceptGraph(torch.ones(3, 3), tau=0.1)
    assert (head(scores, alone) - head(scores, everyone)).abs().max() > 1e-3


def test_graph_weights_are_co_occurrences_whose_rows_sum_to_one(chain):
    torch.testing.assert_close(chain.weights.sum(dim=1), torch.ones(3))
    torch.testing.assert_close(chain.weights[0], torch.tensor([1.0, 0.6, 0.0]) / 1.6)
    assert chain.edges.tolist() == [[True, True, False], [False, True, False], [False, False, True]]
