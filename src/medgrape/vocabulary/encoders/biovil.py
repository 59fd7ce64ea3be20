"""BioViL-T, the paper's text encoder, from the model hub: one commit of one repository, without its code."""

import re
from importlib import import_module
from pathlib import Path

from medgrape.config import TextSettings
from medgrape.vocabulary.encoders.base import TextEncoderError, encoder
from medgrape.vocabulary.encoders.bert import BertEncoder, load_bert

REPOSITORY = "microsoft/BiomedVLP-BioViL-T"
_FILES = (
    "config.json",
    "model.safetensors",
    "pytorch_model.bin",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ALTERNATIVES = 'or give text.encoder the folder of a copy, or use text.encoder = "lexical", which needs no download'


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
