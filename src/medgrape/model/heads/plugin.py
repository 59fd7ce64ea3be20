"""A head of another package, checked against the contract of heads."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import HeadOutput
from medgrape.plugins import OwnPart


class PluginHead(nn.Module):
    """Wraps a module that turns scores into logits and may have a method ``attention``."""

    def __init__(self, plugin: OwnPart, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        module = plugin.make(concepts=concepts, prototypes=prototypes, classes=classes, dropout=dropout)
        if not isinstance(module, nn.Module):
            raise plugin.refuse(f"returned a {type(module).__name__}, not a torch module")
        self.own = module  # part of the names of tensors in a run
        self._check(plugin, concepts, prototypes, classes)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        logits: Tensor = self.own(scores, graph)
        return logits

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """Return the attention between concepts, or None if the module has no such method."""
        method = getattr(self.own, "attention", None)
        return method(scores, graph) if callable(method) else None

    def classify(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> HeadOutput:
        """Return logits and attention."""
        return HeadOutput(self(scores, graph), self.attention(scores, graph))

    @torch.no_grad()
    def _check(self, plugin: OwnPart, concepts: int, prototypes: int, classes: int) -> None:
        """Run it on two random score matrices before it is used on films."""
        scores = torch.rand(2, concepts, prototypes, generator=torch.Generator().manual_seed(0))
        graph, was_training = ConceptGraph(torch.ones(concepts, concepts), 0.0), self.training
        self.eval()
        try:
            output, again = self.classify(scores, graph), self.classify(scores, graph)
        except Exception as error:  # whatever the module raises
            raise plugin.refuse(f"fails on scores of {concepts} concepts ({type(error).__name__}: {error})") from error
        finally:
            self.train(was_training)
        logits: object = output.logits
        if not isinstance(logits, Tensor) or logits.shape != (2, classes):
            raise plugin.refuse(
                f"returns logits of shape {_shape(logits)} for two films and {classes} classes, not {(2, classes)}"
            )
        if not logits.is_floating_point() or not torch.isfinite(logits).all():
            raise plugin.refuse("returns logits that are not finite numbers")
        if not torch.equal(output.logits, again.logits):
            raise plugin.refuse("returns different logits for the same scores in eval mode")
        attention: object = output.attention
        if attention is not None and (not isinstance(attention, Tensor) or attention.shape != (2, concepts, concepts)):
            raise plugin.refuse(f"returns attention of shape {_shape(attention)}, not {(2, concepts, concepts)}")


def _shape(value: object) -> object:
    return tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
