"""What a model said about a set of films, as arrays: all that the figures are computed from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from medgrape.data.dataset import Dataset, FilmRecord


@dataclass(frozen=True)
class Readings:
    """One row for each film that could be read."""

    dataset: Dataset
    films: Sequence[FilmRecord]
    probabilities: Float[np.ndarray, "films classes"]
    scores: Float[np.ndarray, "films concepts"]
    """How strongly each concept shows anywhere on the film: the peak of its mean map."""
    mean_maps: Float[np.ndarray, "films concepts h w"]
    """Mean over the concept's prototypes at each patch."""
    max_maps: Float[np.ndarray, "films concepts h w"]
    """Maximum over the concept's prototypes at each patch."""
    cam_maps: Mapping[str, Float[np.ndarray, "films h w"]] = field(default_factory=dict)
    """The CAM head's logits, by concept; those that the model learnt after training have none."""
