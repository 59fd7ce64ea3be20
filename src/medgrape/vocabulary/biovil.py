"""BioViL-T, the paper's text encoder, from the model hub: one commit of one repository, and none of its code."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from medgrape.vocabulary.encoder_folder import TextEncoderError

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
_OTHERWISE = 'or give text.encoder the folder of a copy, or use text.encoder = "lexical", which needs no download'


def fetch_biovil_t(revision: str) -> Path:
    """The folder that holds BioViL-T as of commit ``revision``, downloaded unless an earlier call has."""
    if not _COMMIT.fullmatch(revision):
        given = f", not {revision!r}, which may move" if revision else ""
        raise TextEncoderError(
            f'text.encoder = "biovil-t" needs text.revision, the 40 hexadecimal digits of a commit of '
            f"huggingface.co/{REPOSITORY}{given}; set it, {_OTHERWISE}."
        )
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise TextEncoderError(f"BioViL-T needs: pip install 'medgrape[text]'; run it, {_OTHERWISE}.") from error
    try:
        with _quiet(hub):
            return Path(hub.snapshot_download(REPOSITORY, revision=revision, allow_patterns=list(_FILES)))
    except (OSError, hub.errors.HTTPError) as error:
        raise TextEncoderError(
            f"{REPOSITORY} at commit {revision} could not be fetched from the model hub; "
            f"check text.revision and the connection, {_OTHERWISE}."
        ) from error


@contextmanager
def _quiet(hub: ModuleType) -> Iterator[None]:
    """No line for each attempt that failed; the last one is raised. The bar of a download stays."""
    logging = hub.utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
