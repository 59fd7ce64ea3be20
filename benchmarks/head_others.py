"""The same GAT head, with the same weights, in other implementations."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.errors import UserError
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.gat import GatHead, GraphAttention


def graph_library(head: GatHead, graph: ConceptGraph, batch: int) -> Callable[[Tensor], Tensor]:
    """Run two GATConv layers on one graph of all films, whose edges are prepared beforehand; then the same readout."""
    layers = [_convolution(own) for own in (head.first, head.second)]
    concepts = len(graph.edges)
    edges = torch.cat([_edges(graph) + film * concepts for film in range(batch)], dim=1)

    def run(found: Float[Tensor, "b k m"]) -> Float[Tensor, "b classes"]:
        nodes = found.flatten(0, 1)
        for layer in layers:
            nodes = F.elu(layer(nodes, edges))
        return head.readout(nodes.view(-1, concepts, nodes.shape[-1]))  # type: ignore[no-any-return]

    return run


def one_film_at_a_time(head: GatHead, graph: ConceptGraph) -> Callable[[Tensor], Tensor]:
    """Layer by layer a Python loop over the films, as the head that was published with the paper works; in it, edges
    are gathered and scattered. Unlike there, what arrives is what the speaker said.
    """
    edges = _edges(graph)

    def run(found: Float[Tensor, "b k m"]) -> Float[Tensor, "b classes"]:
        once = torch.stack([_heard(head.first, film, edges) for film in found])
        twice = torch.stack([_heard(head.second, film, edges) for film in once])
        return head.readout(twice)  # type: ignore[no-any-return]

    return run


def _heard(layer: GraphAttention, nodes: Float[Tensor, "k m"], edges: Int[Tensor, "2 e"]) -> Float[Tensor, "k out"]:
    """Run one film through one layer edge by edge: gather both ends, weigh, sum at the listener."""
    speaker, listener = edges
    spoken = layer.transform(nodes).unflatten(-1, (layer.heads, -1))
    ends = torch.cat([spoken[listener], spoken[speaker]], dim=-1)
    scores = F.leaky_relu((ends * torch.cat([layer.listener, layer.speaker], dim=-1)).sum(dim=-1), layer.slope)
    where = listener.unsqueeze(-1).expand_as(scores)
    highest = torch.full((len(nodes), layer.heads), -torch.inf).scatter_reduce(0, where, scores, "amax")
    weights = (scores - highest[listener]).exp()
    shares = weights / torch.zeros_like(highest).scatter_add(0, where, weights)[listener]
    arrived = shares.unsqueeze(-1) * spoken[speaker]
    places = listener.view(-1, 1, 1).expand_as(arrived)
    return F.elu(torch.zeros_like(spoken).scatter_add(0, places, arrived).flatten(1))


def _edges(graph: ConceptGraph) -> Int[Tensor, "2 e"]:
    """Return the speaker and the listener of every edge."""
    listener, speaker = graph.edges.nonzero(as_tuple=True)
    return torch.stack([speaker, listener])


def _convolution(layer: GraphAttention) -> Any:  # noqa: ANN401 (of a library that nobody needs otherwise)
    inputs, width = layer.transform.in_features, layer.listener.shape[1]
    built = _gat_conv()(inputs, width, heads=layer.heads, negative_slope=layer.slope, bias=False, add_self_loops=False)
    with torch.no_grad():
        built.lin.weight.copy_(layer.transform.weight)
        built.att_dst.copy_(layer.listener[None])
        built.att_src.copy_(layer.speaker[None])
    return built.eval().requires_grad_(False)


def _gat_conv() -> Any:  # noqa: ANN401
    try:
        with warnings.catch_warnings(action="ignore"):  # of its import alone
            return import_module("torch_geometric.nn").GATConv
    except ModuleNotFoundError as missing:
        raise UserError("A head of GATConv layers needs: pip install torch_geometric.") from missing
