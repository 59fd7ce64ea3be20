"""What a head says of some films."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Verdict:
    """Classes, and whom each concept listened to."""

    logits: Float[Tensor, "b classes"]
    attention: Float[Tensor, "b k k"] | None
    """How much each concept (row) listened to each (column); None where the head does not choose."""
