"""All prototypes on one sheet, each with the training film behind it, so that somebody can see what it looks at."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from medgrape.concepts import colour
from medgrape.errors import UserError
from medgrape.explain.layout import (
    BACKGROUND,
    FAINT,
    INK,
    SMALL,
    beside,
    bordered,
    framed,
    paragraph,
    stacked,
    title_of,
)
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.runs.checkpoint import Run
from medgrape.vocabulary.curation import PrototypeCard

TILE, COLUMNS, GAP, MARGIN = 168, 10, 12, 28
_GONE = "#D55E00"
_LEGEND = (
    "Each tile: a prototype's number, and the training film with the patch nearest to it, which is framed. Discarded "
    "prototypes are crossed out. Discard those that look at something else than the finding: medgrape atlas discard."
)


class SheetError(UserError):
    """A contact sheet that cannot be kept under the name that was asked for."""


def save_sheet(run: Run, cards: Sequence[PrototypeCard], path: Path) -> None:
    """Draw the sheet into a PNG file, which is whole or not there."""
    if path.suffix.lower() != ".png":
        raise SheetError(f"The sheet is drawn as PNG; name the file {path.with_suffix('.png').name}.")
    sheet = draw_sheet(run, cards)
    with whole_file(path) as draft:
        sheet.save(draft, "PNG")


def draw_sheet(run: Run, cards: Sequence[PrototypeCard]) -> Image.Image:
    """A block of tiles for each concept."""
    blocks = [_block(run, name, [card for card in cards if card.concept == name]) for name in run.concepts.names]
    width = COLUMNS * TILE + (COLUMNS - 1) * GAP
    footer = [paragraph(NOTICE, width, bold=True), paragraph(_LEGEND, width, size=SMALL, ink=FAINT, most=2)]
    return bordered(stacked([*(block for block in blocks if block is not None), *footer], gap=18), MARGIN)


def _block(run: Run, concept: str, cards: list[PrototypeCard]) -> Image.Image | None:
    if not cards:
        return None
    ink = colour(run.concepts.index(concept))
    gone = sum(not card.kept for card in cards)
    title = f"{title_of(run.concepts[concept])}: {len(cards)} prototypes{f', {gone} of them discarded' if gone else ''}"
    tiles = [_tile(run, card, ink) for card in cards]
    rows = [beside(tiles[start : start + COLUMNS], gap=GAP) for start in range(0, len(tiles), COLUMNS)]
    return stacked([paragraph(title, COLUMNS * TILE, size=22, bold=True), *rows], gap=GAP)


def _tile(run: Run, card: PrototypeCard, ink: str) -> Image.Image:
    film = _film(run, card, ink)
    if not card.kept:
        pen = ImageDraw.Draw(film)
        pen.line((0, 0, TILE, TILE), fill=_GONE, width=3)
        pen.line((0, TILE, TILE, 0), fill=_GONE, width=3)
    said = "discarded" if not card.kept else "" if card.similarity is None else f"similarity {card.similarity:.2f}"
    number = paragraph(str(card.number), 46, bold=True, ink=INK if card.kept else _GONE)
    told = beside([number, paragraph(said, TILE - 46, size=SMALL, ink=FAINT)], low=True)
    return stacked([film, told], gap=3)


def _film(run: Run, card: PrototypeCard, ink: str) -> Image.Image:
    """The film behind a prototype with the patch framed, or an empty tile where none may be shown."""
    if card.film is None or card.patch is None:
        return framed(paragraph("no film shown", TILE, size=SMALL, ink=FAINT), TILE, TILE, BACKGROUND)
    place = run.exemplars.film[run.concepts.index(card.concept), card.number]  # two films may have one name
    pixels = run.exemplars.thumbnails[place]
    film = Image.fromarray(pixels).convert("RGB").resize((TILE, TILE), Image.Resampling.BICUBIC)
    x1, y1, x2, y2 = PatchGrid(FilmSize(TILE, TILE), *run.exemplars.grid).patch(*card.patch).corners
    pen = ImageDraw.Draw(film)
    pen.rectangle((x1 - 4, y1 - 4, x2 + 4, y2 + 4), outline="black", width=1)
    pen.rectangle((x1 - 3, y1 - 3, x2 + 3, y2 + 3), outline=ink, width=2)
    return film
