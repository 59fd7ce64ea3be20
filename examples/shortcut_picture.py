"""The picture of examples/shortcut.py: accuracy of each reader, and the discarded prototypes."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from PIL import Image

from medgrape.concepts import colour
from medgrape.explain.atlas_sheet import draw_sheet
from medgrape.explain.layout import stacked
from medgrape.reader import Reader
from medgrape.vocabulary.curation import prototypes_of

SHOWN = 20
"""Number of discarded prototypes in the picture."""


@dataclass(frozen=True)
class Accuracy:
    """Accuracies of one reader."""

    name: str
    lying: float
    """On films where the device is misleading."""
    honest: float
    """On test films where the device goes with the disease, as in training."""


def draw_picture(
    reader: Reader, on_device: Float[np.ndarray, "k m"], gone: dict[str, list[int]], told: list[Accuracy], path: Path
) -> None:
    """Draw bars before and after, and below them the training films of the prototypes that point at the device most."""
    run = reader.loaded.run
    cards = [card for card in prototypes_of(run) if card.number in gone[card.concept]]
    cards.sort(key=lambda card: -on_device[run.concepts.index(card.concept), card.number])
    first = {card.film: card for card in reversed(cards)}  # each film once
    shown = [card for card in cards if first[card.film] is card][:SHOWN]
    sheet = draw_sheet(run, shown)
    stacked([_bars(told, sheet.width), sheet]).save(path)


def _bars(told: list[Accuracy], width: int) -> Image.Image:

    figure = Figure(figsize=(width / 100, 5), dpi=100, layout="constrained")
    axes, across = figure.subplots(), np.arange(len(told))
    axes.bar(across - 0.2, [one.lying for one in told], 0.38, color=colour(5), label="the pacemaker lies")
    axes.bar(across + 0.2, [one.honest for one in told], 0.38, color=colour(4), label="it tells the truth")
    for bar in (bar for bars in axes.containers for bar in bars):
        axes.annotate(f"{bar.get_height():.2f}", (bar.get_x() + 0.19, bar.get_height()), ha="center", va="bottom")
    axes.set_xticks(across, [one.name for one in told])
    axes.set_ylim(0, 1.1)
    axes.set_ylabel("share of test films answered rightly")
    axes.legend(frameon=False, loc="upper left", ncols=2)
    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    return Image.open(drawn)
