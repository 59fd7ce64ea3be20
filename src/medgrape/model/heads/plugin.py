"""A head that another package brings along, held to what every head promises."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import Verdict
from medgrape.plugins import OwnPart


class OwnHead(nn.Module):
    """Somebody's module, which need not do more than turn scores into logits."""

    def __init__(self, part: OwnPart, concepts: int, prototypes: int, classes: int, dropout: float) -> None:
        super().__init__()
        own = part.make(concepts=concepts, prototypes=prototypes, classes=classes, dropout=dropout)
        if not isinstance(own, nn.Module):
            raise part.refuse(f"made a {type(own).__name__}, not a torch module")
        self.own = own
        self._check(part, concepts, prototypes, classes)

    def forward(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b classes"]:
        """Class logits."""
        logits: Tensor = self.own(scores, graph)
        return logits

    def attention(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Float[Tensor, "b k k"] | None:
        """How much each concept listened to each, where the module has a method that tells."""
        asked = getattr(self.own, "attention", None)
        return asked(scores, graph) if callable(asked) else None

    def judge(self, scores: Float[Tensor, "b k m"], graph: ConceptGraph) -> Verdict:
        """Both."""
        return Verdict(self(scores, graph), self.attention(scores, graph))

    @torch.no_grad()
    def _check(self, part: OwnPart, concepts: int, prototypes: int, classes: int) -> None:
        """Two made-up films, before anybody trusts it with a real one."""
        scores = torch.rand(2, concepts, prototypes, generator=torch.Generator().manual_seed(0))
        graph, was_training = ConceptGraph(torch.ones(concepts, concepts), 0.0), self.training
        self.eval()
        try:
            verdict, again = self.judge(scores, graph), self.judge(scores, graph)
        except Exception as error:  # whatever somebody's module raises
            raise part.refuse(f"fails on scores of {concepts} concepts ({type(error).__name__}: {error})") from error
        finally:
            self.train(was_training)
        _check_logits(part, verdict.logits, (2, classes))
        if not torch.equal(verdict.logits, again.logits):
            raise part.refuse("answers otherwise each time in eval mode")
        heard = verdict.attention
        if heard is not None and (not isinstance(heard, Tensor) or heard.shape != (2, concepts, concepts)):
            raise part.refuse(f"tells whom it listened to as {_shape(heard)}, not as {(2, concepts, concepts)}")


def _check_logits(part: OwnPart, logits: object, shape: tuple[int, int]) -> None:
    if not isinstance(logits, Tensor) or logits.shape != shape:
        raise part.refuse(f"gives logits of shape {_shape(logits)} for two films and {shape[1]} classes, not {shape}")
    if not logits.is_floating_point() or not torch.isfinite(logits).all():
        raise part.refuse("gives logits that are no finite numbers")


def _shape(found: object) -> object:
    return tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
