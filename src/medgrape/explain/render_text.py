"""Letters for pictures: a typeface that knows accents, Greek and Cyrillic, and lines that keep to their width."""

import unicodedata
from collections import deque
from functools import cache
from pathlib import Path

import matplotlib
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

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
