"""A contact sheet of all prototypes, each with the training film nearest to it."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from medgrape.concepts import colour
from medgrape.explain.layout import (
    BACKGROUND,
    FAINT,
    INK,
    SMALL,
    beside,
    bordered,
    exemplar_tile,
    framed,
    paragraph,
    save_png,
    stacked,
    title_of,
)
from medgrape.explain.words import NOTICE
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.runs.checkpoint import Run
from medgrape.vocabulary.curation import PrototypeCard

TILE, COLUMNS, GAP, MARGIN = 168, 10, 12, 28
_DISCARDED = "#D55E00"
_LEGEND = (
    "Each tile: a prototype's number, and the training film with the patch nearest to it, which is framed. Discarded "
    "prototypes are crossed out. Discard those that look at something else than the finding: medgrape atlas discard."
)


def save_sheet(run: Run, cards: Sequence[PrototypeCard], path: Path) -> None:
    """Draw the sheet into a PNG file, atomically."""
    save_png(lambda: draw_sheet(run, cards), path)


def draw_sheet(run: Run, cards: Sequence[PrototypeCard]) -> Image.Image:
    """Return the sheet: a title and a block of tiles for each concept."""
    width, panels = COLUMNS * TILE + (COLUMNS - 1) * GAP, list[Image.Image]()
    for row, concept in enumerate(run.concepts):
        tiles = [_tile(run, card, colour(row)) for card in cards if card.concept == concept.name]
        discarded = sum(card.concept == concept.name and not card.kept for card in cards)
        title = f"{title_of(concept)}: {len(tiles)} prototypes"
        title += f", {discarded} of them discarded" if discarded else ""
        lines = [beside(tiles[start : start + COLUMNS], gap=GAP) for start in range(0, len(tiles), COLUMNS)]
        if tiles:
            panels.append(stacked([paragraph(title, COLUMNS * TILE, size=22, bold=True), *lines], gap=GAP))
    panels += [paragraph(NOTICE, width, bold=True), paragraph(_LEGEND, width, size=SMALL, ink=FAINT, most=2)]
    return bordered(stacked(panels, gap=18), MARGIN)


def _tile(run: Run, card: PrototypeCard, ink: str) -> Image.Image:
    """Return the film nearest to a prototype, crossed out if discarded, above its number and similarity."""
    if card.film is None or card.patch is None:  # films are withheld
        film = framed(paragraph("no film shown", TILE, size=SMALL, ink=FAINT), TILE, TILE, BACKGROUND)
    else:
        row = run.concepts.index(card.concept)
        thumbnail = run.exemplars.thumbnails[run.exemplars.film[row, card.number]]  # two films may have one name
        patch = PatchGrid(FilmSize(TILE, TILE), *run.exemplars.grid).patch(*card.patch)
        film = exemplar_tile(thumbnail, TILE, patch, ink)
    text = "" if card.similarity is None else f"similarity {card.similarity:.2f}"
    if not card.kept:
        text, pen = "discarded", ImageDraw.Draw(film)
        pen.line((0, 0, TILE, TILE), fill=_DISCARDED, width=3)
        pen.line((0, TILE, TILE, 0), fill=_DISCARDED, width=3)
    number = paragraph(str(card.number), 46, bold=True, ink=INK if card.kept else _DISCARDED)
    caption = beside([number, paragraph(text, TILE - 46, size=SMALL, ink=FAINT)], low=True)
    return stacked([film, caption], gap=3)
