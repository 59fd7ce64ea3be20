"""The protocol of text encoders, their registry, and the checks of encoders of other packages."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.config import TextSettings
from medgrape.errors import UserError
from medgrape.plugins import Plugin, register

encoder = partial(register, "text encoder")
"""Decorator: ``@encoder("lexical")`` registers a function from ``TextSettings`` to a ``TextEncoder``."""
TOLERANCE = 1e-3  # Largest deviation of a vector's length from 1
_SAMPLES = ("Thick-walled lucency in the upper lobe.", "Fluid above the diaphragm.")


class TextEncoderError(UserError):
    """A text encoder that is not available, or a text that cannot be encoded."""


@runtime_checkable
class TextEncoder(Protocol):
    """Turns sentences into unit vectors, deterministically."""

    @property
    def name(self) -> str:
        """Its name, for display and for a run's JSON."""

    @property
    def note(self) -> str:
        """Its quality, in one sentence."""

    @property
    def width(self) -> int:
        """Length of each vector."""

    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """Return a unit vector for each sentence, without gradient."""


@encoder("none")
def no_encoder(settings: TextSettings) -> None:
    """Use no text at all."""


class PluginEncoder:
    """Wraps an encoder and checks every vector that it returns."""

    def __init__(self, plugin: Plugin) -> None:
        encoder = plugin.make()
        with plugin.answering("fails when its attributes are read"):
            missing = [name for name in ("name", "note", "width", "encode") if not hasattr(encoder, name)]
        if missing:
            raise plugin.refuse(f"has no {missing[0]!r}")
        if not isinstance(encoder.width, int) or encoder.width < 2:
            raise plugin.refuse(f"has the width {encoder.width!r}, which is not an integer of at least 2")
        self._plugin, self._encoder, self.width = plugin, encoder, encoder.width
        self.name = f"{plugin.name}: {encoder.name} ({plugin.distribution} {plugin.version})"
        self.note = str(encoder.note)
        first, again = self.encode(_SAMPLES), self.encode(_SAMPLES)
        if not torch.allclose(first, again, atol=TOLERANCE):
            raise plugin.refuse("returns different vectors for the same sentence")
        if torch.allclose(first[0], first[1], atol=1e-6):
            raise plugin.refuse("returns the same vector for different sentences")

    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """Return a unit vector for each sentence, without gradient."""
        with torch.no_grad(), self._plugin.answering(f"fails on {len(sentences)} sentences"):
            encoded = self._encoder.encode(list(sentences))
        if not isinstance(encoded, Tensor) or not encoded.is_floating_point():
            raise self._plugin.refuse(f"encodes sentences as {type(encoded).__name__}, not as a tensor of floats")
        shape, expected = tuple(encoded.shape), (len(sentences), self.width)
        if shape != expected:
            raise self._plugin.refuse(
                f"returns vectors of shape {shape} for {len(sentences)} sentences, not {expected}"
            )
        vectors = encoded.detach().float().cpu()
        lengths = vectors.norm(dim=1)
        if not ((lengths - 1).abs() <= TOLERANCE).all():  # also refuses NaN
            worst = lengths[(lengths - 1).abs().argmax()]
            raise self._plugin.refuse(f"returns vectors of length {float(worst):.3g}, not unit vectors")
        return vectors
