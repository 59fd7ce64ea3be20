"""A text encoder without a model: sentences that share words, or parts of words, lie close to each other."""

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.vocabulary.encoder_folder import TextEncoderError

WIDTH = 768
"""As wide as a BERT, so that whatever is built on a description keeps its size when a better encoder comes."""
_LENGTHS = range(3, 6)
"""Of the parts of words that count."""
_WORD_WEIGHT = 2.0
"""A word found whole says more than any one of its parts."""
_WORD = re.compile(r"[^\W_]+")
_SMALL_WORDS = frozenset(
    re.findall(r"\w+", "a an and are as at be by for from in is it its of on or than that the this to which whose with")
)
"""English words that every sentence has, whatever it is about. ``no``, ``not`` and ``without`` count: they matter."""


class LexicalEncoder:
    """Counts words and their parts of 3 to 5 letters, each added to or taken from one of 768 places by a fixed hash."""

    @property
    def name(self) -> str:
        """What it is, for people and for a run's JSON."""
        return "lexical (hashed words and character n-grams)"

    @property
    def note(self) -> str:
        """What it is worth."""
        return (
            "It compares words, not meanings: two sentences that describe one finding in different words "
            "are strangers to it."
        )

    @property
    def width(self) -> int:
        """Of every vector."""
        return WIDTH

    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """A unit vector for each sentence, the same on every machine."""
        vectors = torch.empty(len(sentences), WIDTH, dtype=torch.float32)
        for row, sentence in enumerate(sentences):
            vectors[row] = torch.tensor(_unit_vector(sentence), dtype=torch.float64)
        return vectors


def _unit_vector(sentence: str) -> list[float]:
    places = [0.0] * WIDTH
    for (part, weight), count in Counter(_parts(sentence)).items():
        place, sign = _hashed(part)
        places[place] += sign * weight * (1 + math.log(count))
    norm = math.sqrt(math.fsum(value * value for value in places))
    if norm == 0:
        raise TextEncoderError(f"{sentence!r} has no words to compare; describe the finding in a sentence.")
    return [value / norm for value in places]


def _parts(sentence: str) -> Iterator[tuple[str, float]]:
    """Every word but the small ones and, with the word's two ends marked, every part of it."""
    words = _WORD.findall(unicodedata.normalize("NFKC", sentence).lower())
    for word in (word for word in words if word not in _SMALL_WORDS):
        yield f"word {word}", _WORD_WEIGHT
        marked = f"<{word}>"
        for length in _LENGTHS:
            for start in range(len(marked) - length + 1):
                yield f"part {marked[start : start + length]}", 1.0


def _hashed(part: str) -> tuple[int, int]:
    """Where a part counts and with which sign, so that parts that share a place cancel rather than add up."""
    digest = int.from_bytes(hashlib.blake2b(part.encode(), digest_size=8).digest(), "little")
    return (digest >> 1) % WIDTH, 1 if digest & 1 else -1
