"""The protocol of text encoders, and the registry of built-in ones."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from medgrape.config import TextSettings
from medgrape.errors import UserError
from medgrape.plugins import register

encoder = partial(register, "text encoder")
"""Decorator: ``@encoder("lexical")`` registers a function from ``TextSettings`` to a ``TextEncoder``."""


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
