"""The settings of a sentence encoder in a folder: architecture, pooling, and longest sentence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medgrape.vocabulary.encoders.base import TextEncoderError

Pooling = Literal["cls", "mean"]
"""The vector of a sentence: the state of the first token, or the mean over all tokens."""
TRUNKS = {
    "bert": "BertModel",
    "cxr-bert": "BertModel",  # BioViL-T and its relatives: a plain BERT with other heads
    "distilbert": "DistilBertModel",
    "mpnet": "MPNetModel",
    "roberta": "RobertaModel",
    "xlm-roberta": "XLMRobertaModel",
}
"""Supported families, and the class of ``transformers`` for the trunk of each."""
_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class EncoderFolder:
    """A sentence encoder on disk."""

    trunk: Path
    """The folder of the network's config, weights and tokenizer."""
    family: str
    config: Mapping[str, Any]
    pooling: Pooling
    longest: int | None = None
    """Maximum number of tokens, if the folder states it."""
    lower_case: bool = False
    """Whether sentences are converted to lower case before tokenization."""


def read_encoder_folder(folder: Path) -> EncoderFolder:
    """Read the settings without loading weights; an unsupported setting is a ``TextEncoderError``."""
    if not (folder / "modules.json").is_file():
        config = _mapping(folder / "config.json")
        return EncoderFolder(folder, _family(folder, config), config, "cls")
    modules = _modules(folder)
    trunk = folder / modules["Transformer"]
    config, limits = _mapping(trunk / "config.json"), _mapping(trunk / "sentence_bert_config.json", optional=True)
    if _mapping(folder / "config_sentence_transformers.json", optional=True).get("default_prompt_name"):
        raise TextEncoderError(
            f"{folder.name} puts a prompt before every sentence, which is not supported; choose another encoder."
        )
    return EncoderFolder(
        trunk,
        _family(folder, config),
        config,
        _pooling(folder, _mapping(folder / modules["Pooling"] / "config.json")),
        limits.get("max_seq_length"),
        bool(limits.get("do_lower_case", False)),
    )


def _modules(folder: Path) -> dict[str, str]:
    """Return the modules of a sentence-transformers folder by type, and the sub-folder of each."""
    modules = _json(folder / "modules.json")
    try:
        folders = {str(module["type"]).rsplit(".", 1)[-1]: str(module["path"]) for module in modules}
    except (TypeError, KeyError) as error:
        raise TextEncoderError(f"{folder / 'modules.json'} is damaged; copy the folder again.") from error
    if tuple(folders) not in (_MODULES, _MODULES[:2]) or len(folders) != len(modules):
        raise TextEncoderError(
            f"{folder.name} computes {', '.join(folders)}, and only Transformer, Pooling and Normalize are supported; "
            f"choose another sentence encoder."
        )
    return folders


def _pooling(folder: Path, config: Mapping[str, Any]) -> Pooling:
    """Return the pooling, from the old format (one switch for each kind) or the new one."""
    switched = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    old = [key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for key in switched]
    pooling = config.get("pooling_mode", old)
    kinds = [pooling] if isinstance(pooling, str) else list(pooling)
    if kinds == ["cls"]:
        return "cls"
    if kinds == ["mean"]:
        return "mean"
    raise TextEncoderError(
        f"{folder.name} pools by {' and '.join(map(str, kinds)) or 'nothing'}, and only cls or mean are supported; "
        f"choose another sentence encoder."
    )


def _family(folder: Path, config: Mapping[str, Any]) -> str:
    architectures = [str(name) for name in config.get("architectures") or ()]
    if any(name.startswith(("CXRBert", "BioViL")) for name in architectures):
        return "cxr-bert"
    family = str(config.get("model_type", "bert" if architectures[:1] == ["BertModel"] else ""))
    if family not in TRUNKS:
        raise TextEncoderError(
            f"{folder.name} is of the family {family!r}, and only {', '.join(TRUNKS)} are supported; "
            f'choose another folder or text.encoder = "lexical".'
        )
    return family


def _mapping(path: Path, *, optional: bool = False) -> Mapping[str, Any]:
    if optional and not path.is_file():
        return {}
    payload = _json(path)
    if not isinstance(payload, dict):
        raise TextEncoderError(f"{path} is damaged; copy the folder again.")
    return payload


def _json(path: Path) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise TextEncoderError(
            f"{path.parent} has no {path.name}, so it is no sentence encoder; give text.encoder the folder that "
            f"contains config.json, the weights and the tokenizer."
        ) from error
    except (OSError, ValueError) as error:
        raise TextEncoderError(f"{path} cannot be read ({error}); copy the folder again.") from error
