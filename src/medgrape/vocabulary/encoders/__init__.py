"""Text encoders: a unit vector for each sentence. Each module registers its encoder with ``@encoder("name")``."""

from pathlib import Path

from medgrape.config import TextSettings
from medgrape.errors import nearest
from medgrape.plugins import built_in, find_plugin, part_names
from medgrape.vocabulary.encoders.base import PluginEncoder, TextEncoder, TextEncoderError
from medgrape.vocabulary.encoders.bert import load_bert

__all__ = ["TextEncoder", "TextEncoderError", "open_text_encoder"]


def open_text_encoder(settings: TextSettings) -> TextEncoder | None:
    """Return the encoder that the settings name; None for ``none`` only.

    An encoder that is not available is a ``TextEncoderError`` that says how to get it; there is no fallback.
    """
    factory = built_in("text encoder").get(settings.encoder)
    if factory is not None:
        encoder: TextEncoder | None = factory(settings)
        return encoder
    plugin = find_plugin("text encoder", settings.encoder)
    if plugin is not None:
        return PluginEncoder(plugin)
    folder = Path(settings.encoder).expanduser()
    if not folder.is_dir():
        suggestion = nearest(str(folder), part_names("text encoder"))
        raise TextEncoderError(
            f"There is no text encoder {str(folder)!r}{suggestion} and no folder of that name; use text.encoder = "
            '"lexical", which needs no download, or "minilm", "biovil-t", a folder, or one that medgrape parts lists.'
        )
    title = f"folder {folder.resolve().name}"
    return load_bert(folder, title, "It comes from a local folder; its quality was not measured.")
