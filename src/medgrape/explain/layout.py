"""Panels put side by side and under each other: nothing can lie on top of anything else."""

import unicodedata
from collections import deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import matplotlib
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from medgrape.concepts import Concept

BACKGROUND, INK, FAINT = "#101014", "#ECECF2", "#A9A9B6"
SMALL, PLAIN, HEADING, HEADLINE = 15, 18, 20, 32
_LONGEST = 600
"""Letters of one text that are looked at; nothing here is meant to be longer."""
NO_BREAK = "\u00a0"
"""The blank at which no line ends."""
Font = ImageFont.FreeTypeFont


def typeface(*, bold: bool) -> Path:
    """DejaVu Sans, which comes with matplotlib; Pillow's own typeface lacks every accent."""
    return Path(matplotlib.get_data_path()) / "fonts/ttf" / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")


@cache
def font(size: int, *, bold: bool = False) -> Font:
    """The typeface at a height in pixels."""
    return ImageFont.truetype(typeface(bold=bold), size)


@cache
def _letters() -> frozenset[int]:
    """What both weights can draw."""
    regular, bold = (FT2Font(str(typeface(bold=weight))).get_charmap() for weight in (False, True))
    return frozenset(regular) & frozenset(bold)


def legible(text: str) -> str:
    """The text on one line in letters that can be drawn: accents are dropped if need be, a question mark is last."""
    drawn = "".join(_drawable(letter) for letter in unicodedata.normalize("NFC", text[:_LONGEST]))
    return " ".join(word for word in drawn.split(" ") if word)


def _drawable(letter: str) -> str:
    if unicodedata.category(letter)[0] in "CZ" and letter != NO_BREAK:
        return " "  # for line breaks and for marks that would turn the writing round
    if ord(letter) in _letters():
        return letter
    plain = "".join(part for part in unicodedata.normalize("NFKD", letter) if ord(part) in _letters())
    return plain or "?"


def title_of(concept: Concept) -> str:
    """The title as people read it, or the name where the title's script cannot be drawn."""
    title = legible(concept.title)
    lost = title.count("?") > concept.title.count("?")
    return concept.name.replace("_", " ") if lost or not title else title


def _fits(text: str, letters: Font, width: float) -> bool:
    return letters.getlength(text) <= width - 2  # a glyph may lean a pixel out of its place


def shortened(text: str, letters: Font, width: float) -> str:
    """One line that fits, its middle left out if need be: file names differ at their ends."""
    text = legible(text)
    if _fits(text, letters, width):
        return text
    cuts = (f"{text[: (keep + 1) // 2]}…{text[len(text) - keep // 2 :]}" for keep in range(len(text) - 1, 0, -1))
    return next((cut for cut in cuts if _fits(cut, letters, width)), "")


def wrapped(text: str, letters: Font, width: float, most: int) -> list[str]:
    """At most ``most`` lines that fit; what is left over ends in three dots."""
    words, lines = deque(legible(text).split(" ")), list[str]()
    while words and len(lines) < most - 1:
        line = shortened(words.popleft(), letters, width)
        while words and _fits(f"{line} {words[0]}", letters, width):
            line += f" {words.popleft()}"
        lines.append(line)
    return [*lines, _cut(" ".join(words), letters, width)] if words else lines


def _cut(text: str, letters: Font, width: float) -> str:
    if _fits(text, letters, width):
        return text
    cuts = (f"{text[:keep].rstrip(' ,;')}…" for keep in range(len(text) - 1, 0, -1))
    return next((cut for cut in cuts if _fits(cut, letters, width)), "")


def paragraph(
    text: str,
    width: int,
    *,
    size: int = PLAIN,
    ink: str = INK,
    bold: bool = False,
    most: int = 1,
    paper: str = BACKGROUND,
) -> Image.Image:
    """A panel of exactly ``width`` pixels with the text in it, as high as its lines."""
    letters = font(size, bold=bold)
    lines = wrapped(text, letters, width, most)
    step = round(1.32 * size)
    panel = Image.new("RGB", (width, step * max(len(lines), 1)), paper)
    pen = ImageDraw.Draw(panel)
    for row, line in enumerate(lines):
        pen.text((1, step * row + round(1.02 * size)), line, fill=ink, font=letters, anchor="ls")
    return panel


_FINE = 4
"""Round things are drawn so many times too large, then shrunk, which smooths their edges."""


def stacked(panels: Sequence[Image.Image], gap: int = 0) -> Image.Image:
    """One under the other, flush left."""
    height = sum(panel.height for panel in panels) + gap * max(len(panels) - 1, 0)
    sheet = Image.new("RGB", (max((panel.width for panel in panels), default=1), max(height, 1)), BACKGROUND)
    down = 0
    for panel in panels:
        sheet.paste(panel, (0, down))
        down += panel.height + gap
    return sheet


def beside(panels: Sequence[Image.Image], gap: int = 0, *, low: bool = False) -> Image.Image:
    """One next to the other, flush at the top, or ``low``: at the bottom."""
    width = sum(panel.width for panel in panels) + gap * max(len(panels) - 1, 0)
    sheet = Image.new("RGB", (max(width, 1), max((panel.height for panel in panels), default=1)), BACKGROUND)
    across = 0
    for panel in panels:
        sheet.paste(panel, (across, sheet.height - panel.height if low else 0))
        across += panel.width + gap
    return sheet


def framed(panel: Image.Image, width: int, height: int, paper: str = BACKGROUND) -> Image.Image:
    """The panel in the middle of a sheet that is at least as large as asked."""
    width, height = max(width, panel.width), max(height, panel.height)
    sheet = Image.new("RGB", (width, height), paper)
    sheet.paste(panel, ((width - panel.width) // 2, (height - panel.height) // 2))
    return sheet


def bordered(panel: Image.Image, margin: int, paper: str = BACKGROUND) -> Image.Image:
    """The panel with a margin all round."""
    return framed(panel, panel.width + 2 * margin, panel.height + 2 * margin, paper)


def is_bright(ink: str) -> bool:
    """Whether black is easier to read on this colour than white."""
    red, green, blue = (int(ink[place : place + 2], 16) for place in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue > 95


def badge(letter: str, ink: str, side: int) -> Image.Image:
    """A disc in a concept's colour with its letter, clear around it."""
    large = side * _FINE
    disc = Image.new("RGBA", (large, large), ink + "00")
    pen = ImageDraw.Draw(disc)
    pen.ellipse((0, 0, large - 1, large - 1), fill="#000000C0")
    pen.ellipse((_FINE, _FINE, large - 1 - _FINE, large - 1 - _FINE), fill=ink)
    fill = "black" if is_bright(ink) else "white"
    pen.text((large / 2, large / 2), letter, fill=fill, font=font(round(0.62 * large), bold=True), anchor="mm")
    return disc.resize((side, side), Image.Resampling.LANCZOS)


def stamped(panel: Image.Image, disc: Image.Image, centre: tuple[float, float]) -> None:
    """Put a badge onto a panel."""
    panel.paste(disc, (round(centre[0] - disc.width / 2), round(centre[1] - disc.height / 2)), disc)


def outlined(panel: Image.Image, corners: tuple[float, float, float, float], ink: str, width: int = 3) -> None:
    """A box with a rim in black, so that it shows on dark and bright alike."""
    pen = ImageDraw.Draw(panel)
    for line, wide in (("black", width + 2), (ink, width)):
        pen.rectangle(corners, outline=line, width=wide)


def halo(panel: Image.Image, mask: Image.Image, ink: str, around: str) -> None:
    """Paint where the mask is white, with a thin rim in another colour so that it shows on dark and bright alike."""
    wide = mask.filter(ImageFilter.MaxFilter(3))
    panel.paste(around, (0, 0), wide)
    panel.paste(ink, (0, 0), mask)
