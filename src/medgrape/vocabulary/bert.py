"""A sentence encoder of the BERT family at work: tokens in, one unit vector for each sentence out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.vocabulary.encoder_folder import Pooling, TextEncoderError

_AT_ONCE = 32


@dataclass(frozen=True)
class BertEncoder:
    """A trunk, its tokenizer, and what of its last layer stands for a sentence."""

    name: str
    note: str
    width: int
    trunk: nn.Module
    tokenizer: Callable[..., Any]
    unknown: int | None
    """The token of every word that the tokenizer does not know."""
    pooling: Pooling
    longest: int
    """Tokens that a sentence may have; a longer one is refused, not cut."""
    lower_case: bool = False

    @torch.no_grad()
    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """A unit vector for each sentence; padding, and so the sentences beside it, has no say."""
        vectors = [torch.empty(0, self.width)]
        for start in range(0, len(sentences), _AT_ONCE):
            tokens, mask = self._tokens(sentences[start : start + _AT_ONCE])
            states = self.trunk(input_ids=tokens, attention_mask=mask).last_hidden_state
            vectors.append(nn.functional.normalize(self._pooled(states, mask), dim=-1))
        return torch.cat(vectors)

    def _tokens(self, sentences: Sequence[str]) -> tuple[Int[Tensor, "n tokens"], Int[Tensor, "n tokens"]]:
        """The sentences in tokens, and a mask that is 1 where there is one and 0 where there is padding."""
        texts = [sentence.lower() if self.lower_case else sentence for sentence in sentences]
        wanted = {"padding": True, "truncation": False, "return_tensors": "pt", "return_special_tokens_mask": True}
        read = self.tokenizer(texts, **wanted, verbose=False)
        tokens, mask = read["input_ids"], read["attention_mask"]
        words = (read["special_tokens_mask"] == 0) & (mask == 1)
        known = words if self.unknown is None else words & (tokens != self.unknown)
        for sentence, length, any_known in zip(sentences, mask.sum(dim=1), known.any(dim=1), strict=True):
            self._check(sentence, int(length), bool(any_known))
        return tokens, mask

    def _check(self, sentence: str, length: int, any_known: bool) -> None:
        if not any_known:
            raise TextEncoderError(f"{self.name} knows no word of {sentence!r}; describe the finding in other words.")
        if length > self.longest:
            raise TextEncoderError(
                f"A sentence of {length} tokens is too long for {self.name}, which reads {self.longest}; "
                f"shorten the one that starts with {sentence[:60]!r}."
            )

    def _pooled(
        self, states: Float[Tensor, "n tokens width"], mask: Int[Tensor, "n tokens"]
    ) -> Float[Tensor, "n width"]:
        if self.pooling == "cls":
            return states[:, 0]
        shares = mask / mask.sum(dim=1, keepdim=True)
        return einsum(states, shares, "n tokens width, n tokens -> n width")
