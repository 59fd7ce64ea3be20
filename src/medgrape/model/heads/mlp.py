"""The MLP head: as many parameters as the GAT head and no graph, so their difference is the worth of the graph."""

from jaxtyping import Float
from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph
from medgrape.model.heads.base import HIDDEN, NoAttentionHead, head


@head("mlp")
class MlpHead(NoAttentionHead):
    """Three linear layers on all scores."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float = 0.0) -> None:  # noqa: ARG002
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(concepts * prototypes, 2 * HIDDEN),
            nn.LayerNorm(2 * HIDDEN),
            nn.ReLU(),
            nn.Linear(2 * HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, classes),
        )

    def forward(
        self,
        scores: Float[Tensor, "b k m"],
        graph: ConceptGraph,  # noqa: ARG002 (the protocol's)
    ) -> Float[Tensor, "b classes"]:
        """Return the class logits."""
        logits: Tensor = self.layers(scores.flatten(1))
        return logits
