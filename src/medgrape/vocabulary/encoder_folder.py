"""What a folder with a sentence encoder says of itself: what its trunk is, and which state stands for a sentence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medgrape.errors import UserError

Pooling = Literal["cls", "mean"]
"""What stands for a sentence: the state of the first token, or the mean over all of them."""
TRUNKS = {
    "bert": "BertModel",
    "cxr-bert": "BertModel",  # BioViL-T and its like: a plain BERT under heads of their own
    "distilbert": "DistilBertModel",
    "mpnet": "MPNetModel",
    "roberta": "RobertaModel",
    "xlm-roberta": "XLMRobertaModel",
}
"""Families that can be read, and the class of ``transformers`` that is each one's trunk."""
_MODULES = ("Transformer", "Pooling", "Normalize")


class TextEncoderError(UserError):
    """A text encoder that is not there, or a text that cannot be encoded."""


@dataclass(frozen=True)
class EncoderFolder:
    """A sentence encoder on disk."""

    trunk: Path
    """Where the network's settings, its weights and its tokenizer lie."""
    family: str
    config: Mapping[str, Any]
    pooling: Pooling
    longest: int | None = None
    """Tokens that a sentence may have, where the folder says so."""
    lower_case: bool = False
    """Whether sentences are put in lower case before the tokenizer sees them."""


def read_encoder_folder(folder: Path) -> EncoderFolder:
    """Look at a folder without loading a weight; ``TextEncoderError`` where it asks for what is not built here."""
    if not (folder / "modules.json").is_file():
        config = _table(folder / "config.json")
        return EncoderFolder(folder, _family(folder, config), config, "cls")
    modules = _modules(folder)
    trunk = folder / modules["Transformer"]
    config, told = _table(trunk / "config.json"), _table(trunk / "sentence_bert_config.json", optional=True)
    _refuse_prompt(folder)
    return EncoderFolder(
        trunk,
        _family(folder, config),
        config,
        _pooling(folder, _table(folder / modules["Pooling"] / "config.json")),
        told.get("max_seq_length"),
        bool(told.get("do_lower_case", False)),
    )


def _modules(folder: Path) -> dict[str, str]:
    """The steps that a sentence-transformers folder lists, by kind, and the sub-folder of each."""
    listed = _json(folder / "modules.json")
    try:
        steps = {str(step["type"]).rsplit(".", 1)[-1]: str(step["path"]) for step in listed}
    except (TypeError, KeyError) as error:
        raise TextEncoderError(f"{folder / 'modules.json'} is damaged; copy the folder again.") from error
    if tuple(steps) not in (_MODULES, _MODULES[:2]) or len(steps) != len(listed):
        raise TextEncoderError(
            f"{folder.name} computes {', '.join(steps)}, and only Transformer, Pooling and Normalize can be read here; "
            f"choose another sentence encoder."
        )
    return steps


def _pooling(folder: Path, told: Mapping[str, Any]) -> Pooling:
    """As the folder names it, in the old spelling (a switch for each kind) or in the new one."""
    old = [key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for key in _switched(told)]
    named = told.get("pooling_mode", old)
    kinds = [named] if isinstance(named, str) else list(named)
    if kinds == ["cls"]:
        return "cls"
    if kinds == ["mean"]:
        return "mean"
    raise TextEncoderError(
        f"{folder.name} pools by {' and '.join(map(str, kinds)) or 'nothing'}, and only cls or mean can be read here; "
        f"choose another sentence encoder."
    )


def _switched(told: Mapping[str, Any]) -> list[str]:
    return [key for key, value in told.items() if key.startswith("pooling_mode_") and value is True]


def _refuse_prompt(folder: Path) -> None:
    told = _table(folder / "config_sentence_transformers.json", optional=True)
    if told.get("default_prompt_name"):
        raise TextEncoderError(
            f"{folder.name} puts a prompt before every sentence, which is not done here; choose another encoder."
        )


def _family(folder: Path, config: Mapping[str, Any]) -> str:
    architectures = [str(name) for name in config.get("architectures") or ()]
    if any(name.startswith(("CXRBert", "BioViL")) for name in architectures):
        return "cxr-bert"
    family = str(config.get("model_type", "bert" if architectures[:1] == ["BertModel"] else ""))
    if family not in TRUNKS:
        raise TextEncoderError(
            f"{folder.name} is of the family {family!r}, and only {', '.join(TRUNKS)} can be read here; "
            f'choose another folder or text.encoder = "lexical".'
        )
    return family


def _table(path: Path, *, optional: bool = False) -> Mapping[str, Any]:
    if optional and not path.is_file():
        return {}
    table = _json(path)
    if not isinstance(table, dict):
        raise TextEncoderError(f"{path} is damaged; copy the folder again.")
    return table


def _json(path: Path) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise TextEncoderError(
            f"{path.parent} has no {path.name}, so it is no sentence encoder; give text.encoder the folder that "
            f"holds config.json, the weights and the tokenizer."
        ) from error
    except (OSError, ValueError) as error:
        raise TextEncoderError(f"{path} cannot be read ({error}); copy the folder again.") from error
