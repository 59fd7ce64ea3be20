"""A text encoder without a model: sentences that share words, or parts of words, have similar vectors."""

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.config import TextSettings
from medgrape.vocabulary.encoders.base import TextEncoderError, encoder

WIDTH = 768  # The width of BERT, so that a model keeps its size when another encoder takes its place
_LENGTHS = range(3, 6)  # Lengths of the character n-grams
_WORD_WEIGHT = 2.0  # Weight of a whole word, relative to one of its n-grams
_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(  # `no`, `not` and `without` are not among them: they matter
    re.findall(r"\w+", "a an and are as at be by for from in is it its of on or than that the this to which whose with")
)


class LexicalEncoder:
    """Counts words and their character n-grams of length 3 to 5, each hashed to one of 768 places and a sign."""

    name = "lexical (hashed words and character n-grams)"
    note = (
        "It compares words, not meanings: two sentences that describe one finding in different words "
        "get dissimilar vectors."
    )
    width = WIDTH

    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """Return a unit vector for each sentence, the same on every machine."""
        vectors = [_unit_vector(sentence) for sentence in sentences]
        return torch.tensor(vectors, dtype=torch.float64).view(-1, WIDTH).float()


@encoder("lexical")
def open_lexical(settings: TextSettings) -> LexicalEncoder:  # noqa: ARG001 (the registry's)
    """Return the encoder, which has no settings."""
    return LexicalEncoder()


def _unit_vector(sentence: str) -> list[float]:
    places = [0.0] * WIDTH
    for (feature, weight), count in Counter(_features(sentence)).items():
        digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
        sign = 1 if digest & 1 else -1  # so that features that share a place cancel rather than add up
        places[(digest >> 1) % WIDTH] += sign * weight * (1 + math.log(count))
    norm = math.sqrt(math.fsum(value * value for value in places))
    if norm == 0:
        raise TextEncoderError(f"{sentence!r} has no words to compare; describe the finding in a sentence.")
    return [value / norm for value in places]


def _features(sentence: str) -> Iterator[tuple[str, float]]:
    """Yield every word except stop words, and its n-grams with the ends of the word marked, each with its weight."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", sentence).lower()):
        if word in _STOP_WORDS:
            continue
        yield f"word {word}", _WORD_WEIGHT
        marked = f"<{word}>"
        for length in _LENGTHS:
            for start in range(len(marked) - length + 1):
                yield f"part {marked[start : start + length]}", 1.0
