"""The linear head: all scores in one row, one linear layer. CSR's head and the baseline."""

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import NoAttentionHead, head


@head("linear")
class LinearHead(NoAttentionHead):
    """One linear layer on all scores."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float = 0.0) -> None:  # noqa: ARG002
        super().__init__()
        self.layer = nn.Linear(concepts * prototypes, classes)

    def forward(
        self,
        scores: Float[Tensor, "b k m"],
        graph: ConceptGraph,  # noqa: ARG002 (the protocol's)
    ) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        logits: Tensor = self.layer(scores.flatten(1))
        return logits
