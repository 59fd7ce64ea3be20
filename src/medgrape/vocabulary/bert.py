"""Sentence encoders of the BERT family from a folder: weights and tokenizer, without running any code of its own."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.model.backbones.transformers_models import quiet_loading
from medgrape.vocabulary.encoder_folder import TRUNKS, EncoderFolder, Pooling, TextEncoderError, read_encoder_folder

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


_HEADS = ("cls.", "cls_projection_head.", "pooler.", "classifier.", "lm_head.", "qa_outputs.", "vocab_")
"""Tensors beside the trunk that a checkpoint may hold and that no sentence vector needs."""
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
_POOLING_TITLES: Mapping[Pooling, str] = {"cls": "[CLS] state of the last layer", "mean": "mean over the last layer"}


def load_bert(folder: Path, title: str, note: str) -> BertEncoder:
    """The encoder in ``folder``; ``TextEncoderError`` where any tensor of its trunk is missing or left over."""
    told = read_encoder_folder(folder)
    transformers = _transformers()
    try:
        with quiet_loading(transformers.utils.logging):
            return _load(transformers, told, f"{title} ({_POOLING_TITLES[told.pooling]})", note)
    except TextEncoderError:
        raise
    except Exception as error:  # a damaged file makes the loaders raise nearly anything, Exception itself included
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise TextEncoderError(
            f"The text encoder in {folder} cannot be loaded ({reason}); copy the folder again."
        ) from error


def _load(transformers: ModuleType, told: EncoderFolder, name: str, note: str) -> BertEncoder:
    kind = getattr(transformers, TRUNKS[told.family])
    config = kind.config_class.from_dict({key: value for key, value in told.config.items() if key != "auto_map"})
    tokenizer = _tokenizer(transformers, told)
    if len(tokenizer) > config.vocab_size:
        raise TextEncoderError(f"{told.trunk} has more words than its network knows; copy the folder again.")
    trunk = _trunk(kind, config, told.trunk)
    longest = min(_positions(trunk), tokenizer.model_max_length, told.longest or math.inf)
    unknown = tokenizer.unk_token_id
    return BertEncoder(
        name, note, config.hidden_size, trunk, tokenizer, unknown, told.pooling, longest, told.lower_case
    )


def _transformers() -> ModuleType:
    try:
        return import_module("transformers")
    except ImportError as error:
        raise TextEncoderError(
            "This text encoder needs the package transformers; run: pip install 'medgrape[text]', "
            'or use text.encoder = "lexical", which needs nothing.'
        ) from error


def _trunk(kind: Any, config: Any, folder: Path) -> nn.Module:  # noqa: ANN401 - classes of an optional package
    """The network without its heads, every tensor of it from the folder and none of the folder's trunk left over."""
    headless = {} if config.model_type == "distilbert" else {"add_pooling_layer": False}
    trunk, loaded = kind.from_pretrained(
        folder,
        config=config,
        local_files_only=True,
        weights_only=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # so that they are named below
        **headless,
    )
    prefix = f"{kind.base_model_prefix}."
    if missing := _bare(loaded["missing_keys"], prefix):
        raise TextEncoderError(f"{folder} lacks {_some(missing)} of its trunk; copy the folder again.")
    others = [*loaded["unexpected_keys"], *(entry[0] for entry in loaded["mismatched_keys"])]
    if misfits := [key for key in _bare(others, prefix) if not _expected(key)]:
        raise TextEncoderError(f"{folder} holds {_some(misfits)}, which its config.json has no place for.")
    network: nn.Module = trunk.float().eval().requires_grad_(False)
    return network


def _positions(trunk: nn.Module) -> int:
    """How many tokens the network can tell apart by place; some families leave the first places to padding."""
    places = cast(nn.Embedding, trunk.get_submodule("embeddings.position_embeddings"))
    return places.num_embeddings - (0 if places.padding_idx is None else places.padding_idx + 1)


def _bare(keys: Iterable[str], prefix: str) -> list[str]:
    return sorted(key.removeprefix(prefix) for key in keys)


def _expected(key: str) -> bool:
    return key.startswith(_HEADS) or key.endswith("position_ids")


def _some(names: Sequence[str]) -> str:
    rest = len(names) - 3
    return ", ".join(names[:3]) + (f" and {rest} more tensors" if rest > 0 else "")


def _tokenizer(transformers: ModuleType, told: EncoderFolder) -> Any:  # noqa: ANN401 - of an optional package
    """BioViL-T names a tokenizer class that lives in code of its own; it is BERT's, so BERT's is used."""
    needed = ("vocab.txt",) if told.family == "cxr-bert" else _VOCABULARIES
    if not any((told.trunk / name).is_file() for name in needed):
        raise TextEncoderError(f"{told.trunk} has no vocabulary ({', '.join(needed)}); copy the whole folder.")
    if told.family == "cxr-bert":
        tokenizer = transformers.BertTokenizerFast.from_pretrained(told.trunk, local_files_only=True)
    else:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            told.trunk, local_files_only=True, trust_remote_code=False
        )
    tokenizer.padding_side = "right"  # so that the first token is never padding
    if tokenizer.cls_token_id is None or tokenizer("lung")["input_ids"][0] != tokenizer.cls_token_id:
        raise TextEncoderError(
            f"The tokenizer in {told.trunk} puts no [CLS] before a sentence; choose another encoder."
        )
    return tokenizer
