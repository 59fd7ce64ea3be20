"""A text encoder: words that radiologists use for one thing count as one word."""

import re
from collections.abc import Sequence

from torch import Tensor

from medgrape.vocabulary.encoders.lexical import LexicalEncoder

SAID_SO = {
    "cavity": ("cavitation", "cavitary", "lucency", "hole"),
    "effusion": ("fluid", "blunting"),
    "opacity": ("consolidation", "infiltrate", "shadowing", "density"),
    "scar": ("fibrosis", "calcification", "calcified", "obsolete"),
}
_WORD = re.compile(r"[^\W_]+")


class SynonymEncoder:
    """The lexical encoder behind a small thesaurus: "lucency" is no longer a stranger to "cavity"."""

    name = "words and synonyms of the ward"
    note = "It knows the synonyms in its list and compares words otherwise; it understands no sentence."

    def __init__(self) -> None:
        self._words = LexicalEncoder()
        self._one_word = {said: meant for meant, all_said in SAID_SO.items() for said in all_said}
        self.width = self._words.width

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """A unit vector for each sentence."""
        return self._words.encode([_WORD.sub(self._meant, sentence.lower()) for sentence in sentences])

    def _meant(self, word: re.Match[str]) -> str:
        return self._one_word.get(word.group(), word.group())
