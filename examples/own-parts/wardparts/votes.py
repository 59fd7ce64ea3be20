"""A head: every concept has one vote for each class, and the votes are added up."""

from torch import Tensor, nn

from medgrape.model.graph import ConceptGraph


class VotesHead(nn.Module):
    """The mean of a concept's scores times one weight for each class: a head that fits on a slip of paper."""

    def __init__(self, concepts: int, prototypes: int, classes: int, dropout: float) -> None:  # noqa: ARG002
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.votes = nn.Linear(concepts, classes)  # the last layer is linear, so the head can grow

    def forward(self, scores: Tensor, graph: ConceptGraph) -> Tensor:  # noqa: ARG002 (who listens to whom: nobody)
        """Films x concepts x prototypes in, films x classes out."""
        logits: Tensor = self.votes(self.dropout(scores.mean(dim=2)))
        return logits
