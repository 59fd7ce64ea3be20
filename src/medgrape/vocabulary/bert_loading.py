"""Sentence encoders of the BERT family from a folder: weights and tokenizer, without running any code of its own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from torch import nn

from medgrape.model.quiet_loading import quiet_loading
from medgrape.vocabulary.bert import BertEncoder
from medgrape.vocabulary.encoder_folder import TRUNKS, EncoderFolder, Pooling, TextEncoderError, read_encoder_folder

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
