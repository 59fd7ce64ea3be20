"""A text encoder that another package brings along, held to what every encoder promises."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.plugins import OwnPart

UNIT = 1e-3
"""How far from 1 the length of a vector may be."""
_TRIED = ("Thick-walled lucency in the upper lobe.", "Fluid above the diaphragm.")


class OwnEncoder:
    """Somebody's encoder; every vector that it gives is looked at before anybody uses it."""

    def __init__(self, part: OwnPart) -> None:
        made = part.make()
        with part.answering("fails when it is asked what it is"):
            missing = [wanted for wanted in ("name", "note", "width", "encode") if not hasattr(made, wanted)]
        if missing:
            raise part.refuse(f"has no {missing[0]!r}")
        if not isinstance(made.width, int) or made.width < 2:
            raise part.refuse(f"is {made.width!r} wide, which is no number of two or more")
        self._part, self._made, self.width = part, made, made.width
        self.name = f"{part.name}: {made.name} ({part.distribution} {part.version})"
        self.note = str(made.note)
        self._try()

    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """A unit vector for each sentence, without gradient."""
        with torch.no_grad(), self._part.answering(f"fails on {len(sentences)} sentences"):
            found = self._made.encode(list(sentences))
        if not isinstance(found, Tensor) or not found.is_floating_point():
            raise self._part.refuse(f"encodes sentences as {type(found).__name__}, not as a tensor of floats")
        if found.shape != (len(sentences), self.width):
            raise self._part.refuse(
                f"gives vectors of shape {tuple(found.shape)} for {len(sentences)} sentences, not "
                f"{(len(sentences), self.width)}"
            )
        vectors = found.detach().float().cpu()
        lengths = vectors.norm(dim=1)
        if not ((lengths - 1).abs() <= UNIT).all():  # also where a length is no number
            worst = lengths[(lengths - 1).abs().argmax()]
            raise self._part.refuse(f"gives vectors of length {float(worst):.3g}, not unit vectors")
        return vectors

    def _try(self) -> None:
        """The same sentences give the same vectors, and different ones do not."""
        first, again = self.encode(_TRIED), self.encode(_TRIED)
        if not torch.allclose(first, again, atol=UNIT):
            raise self._part.refuse("gives another vector each time for the same sentence")
        if torch.allclose(first[0], first[1], atol=1e-6):
            raise self._part.refuse("gives the same vector for different sentences")
