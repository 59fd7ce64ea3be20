"""Panels of text and pictures, arranged side by side and in columns so that nothing overlaps."""

import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import UInt8
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from medgrape.concepts import Concept
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.geometry import Box

BACKGROUND, INK, FAINT = "#101014", "#ECECF2", "#A9A9B6"
SMALL, PLAIN, HEADING, HEADLINE = 15, 18, 20, 32
_LONGEST = 600  # longer texts are cut to this number of characters
NO_BREAK = "\u00a0"
Font = ImageFont.FreeTypeFont


class PictureError(UserError):
    """A picture cannot be saved under this name."""


def save_png(draw: Callable[[], Image.Image], path: Path) -> None:
    """Draw a picture into a PNG file, atomically; another suffix is an error before anything is drawn."""
    if path.suffix.lower() != ".png":
        raise PictureError(f"Pictures are saved as PNG; name the file {path.with_suffix('.png').name}.")
    picture = draw()
    with whole_file(path) as draft:
        picture.save(draft, "PNG")


def typeface(*, bold: bool) -> Path:
    """Return the file of DejaVu Sans, which is part of matplotlib; Pillow's own typeface has no accents."""
    return Path(matplotlib.get_data_path()) / "fonts/ttf" / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")


@cache
def font(size: int, *, bold: bool = False) -> Font:
    """Return the typeface at a height in pixels."""
    return ImageFont.truetype(typeface(bold=bold), size)


@cache
def _drawable() -> frozenset[int]:
    """Return the code points that both weights can draw."""
    regular, bold = (FT2Font(str(typeface(bold=weight))).get_charmap() for weight in (False, True))
    return frozenset(regular) & frozenset(bold)


def legible(text: str) -> str:
    """Return the text on one line, without control characters; what cannot be drawn loses its accents or becomes ?."""

    def replace(character: str) -> str:
        if unicodedata.category(character)[0] in "CZ" and character != NO_BREAK:
            return " "  # line breaks, and marks that change the direction of writing
        if ord(character) in _drawable():
            return character
        return "".join(part for part in unicodedata.normalize("NFKD", character) if ord(part) in _drawable()) or "?"

    replaced = "".join(replace(character) for character in unicodedata.normalize("NFC", text[:_LONGEST]))
    return " ".join(word for word in replaced.split(" ") if word)


def title_of(concept: Concept) -> str:
    """Return the title, or the name if the title cannot be drawn."""
    title = legible(concept.title)
    lost = title.count("?") > concept.title.count("?")
    return concept.name.replace("_", " ") if lost or not title else title


def _fits(text: str, letters: Font, width: float) -> bool:
    return letters.getlength(text) <= width - 2  # a glyph may lean over its box by a pixel


def _first_that_fits(texts: Iterable[str], letters: Font, width: float) -> str:
    return next((text for text in texts if _fits(text, letters, width)), "")


def shortened(text: str, letters: Font, width: float) -> str:
    """Return one line that fits, with its middle left out if it is too long: file names differ at their ends."""
    text = legible(text)
    cuts = (f"{text[: (keep + 1) // 2]}…{text[len(text) - keep // 2 :]}" for keep in range(len(text) - 1, 0, -1))
    return _first_that_fits(chain([text], cuts), letters, width)


def wrapped(text: str, letters: Font, width: float, most: int) -> list[str]:
    """Return at most ``most`` lines that fit; a longer text ends in an ellipsis."""
    words, lines = deque(legible(text).split(" ")), list[str]()
    while words and len(lines) < most - 1:
        line = shortened(words.popleft(), letters, width)
        while words and _fits(f"{line} {words[0]}", letters, width):
            line += f" {words.popleft()}"
        lines.append(line)
    if not words:
        return lines
    rest = " ".join(words)
    cuts = (f"{rest[:keep].rstrip(' ,;')}…" for keep in range(len(rest) - 1, 0, -1))
    return [*lines, _first_that_fits(chain([rest], cuts), letters, width)]


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
    """Return a panel of ``width`` pixels with the text, as high as its lines."""
    letters, step = font(size, bold=bold), round(1.32 * size)
    lines = wrapped(text, letters, width, most)
    panel = Image.new("RGB", (width, step * max(len(lines), 1)), paper)
    pen = ImageDraw.Draw(panel)
    for row, line in enumerate(lines):
        pen.text((1, step * row + round(1.02 * size)), line, fill=ink, font=letters, anchor="ls")
    return panel


_FINE = 4  # discs are drawn larger by this factor and then reduced, which smooths their edges


def stacked(panels: Sequence[Image.Image], gap: int = 0) -> Image.Image:
    """Arrange panels in a column, aligned left."""
    *tops, end = accumulate((panel.height + gap for panel in panels), initial=0)
    sheet = Image.new("RGB", (max((panel.width for panel in panels), default=1), max(end - gap, 1)), BACKGROUND)
    for panel, top in zip(panels, tops, strict=True):
        sheet.paste(panel, (0, top))
    return sheet


def beside(panels: Sequence[Image.Image], gap: int = 0, *, low: bool = False) -> Image.Image:
    """Arrange panels in a row, aligned at the top, or with ``low`` at the bottom."""
    *lefts, end = accumulate((panel.width + gap for panel in panels), initial=0)
    sheet = Image.new("RGB", (max(end - gap, 1), max((panel.height for panel in panels), default=1)), BACKGROUND)
    for panel, left in zip(panels, lefts, strict=True):
        sheet.paste(panel, (left, sheet.height - panel.height if low else 0))
    return sheet


def framed(panel: Image.Image, width: int, height: int, paper: str = BACKGROUND) -> Image.Image:
    """Centre the panel on a sheet of at least this size."""
    width, height = max(width, panel.width), max(height, panel.height)
    sheet = Image.new("RGB", (width, height), paper)
    sheet.paste(panel, ((width - panel.width) // 2, (height - panel.height) // 2))
    return sheet


def bordered(panel: Image.Image, margin: int, paper: str = BACKGROUND) -> Image.Image:
    """Add a margin on all sides."""
    return framed(panel, panel.width + 2 * margin, panel.height + 2 * margin, paper)


def is_bright(ink: str) -> bool:
    """Whether black is more legible on this colour than white."""
    red, green, blue = (int(ink[place : place + 2], 16) for place in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue > 95


def badge(letter: str, ink: str, side: int) -> Image.Image:
    """Return a disc in a colour with a letter, on a transparent square."""
    large = side * _FINE
    disc = Image.new("RGBA", (large, large), ink + "00")
    pen = ImageDraw.Draw(disc)
    pen.ellipse((0, 0, large - 1, large - 1), fill="#000000C0")
    pen.ellipse((_FINE, _FINE, large - 1 - _FINE, large - 1 - _FINE), fill=ink)
    fill = "black" if is_bright(ink) else "white"
    pen.text((large / 2, large / 2), letter, fill=fill, font=font(round(0.62 * large), bold=True), anchor="mm")
    return disc.resize((side, side), Image.Resampling.LANCZOS)


def stamped(panel: Image.Image, disc: Image.Image, centre: tuple[float, float]) -> None:
    """Paste a badge onto a panel."""
    panel.paste(disc, (round(centre[0] - disc.width / 2), round(centre[1] - disc.height / 2)), disc)


def outlined(panel: Image.Image, corners: tuple[float, float, float, float], ink: str, width: int = 3) -> None:
    """Draw a box with a black rim, visible on dark and on bright ground."""
    pen = ImageDraw.Draw(panel)
    for line, wide in (("black", width + 2), (ink, width)):
        pen.rectangle(corners, outline=line, width=wide)


def halo(panel: Image.Image, mask: Image.Image, ink: str, around: str) -> None:
    """Paint the mask with a thin rim in another colour, visible on dark and on bright ground."""
    wide = mask.filter(ImageFilter.MaxFilter(3))
    panel.paste(around, (0, 0), wide)
    panel.paste(ink, (0, 0), mask)


def exemplar_tile(thumbnail: UInt8[np.ndarray, "height width"], side: int, patch: Box, ink: str) -> Image.Image:
    """Return the thumbnail of a training film with a frame around a patch, which is in pixels of the tile."""
    tile = Image.fromarray(thumbnail).convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
    x1, y1, x2, y2 = patch.corners
    pen = ImageDraw.Draw(tile)
    pen.rectangle((x1 - 4, y1 - 4, x2 + 4, y2 + 4), outline="black", width=1)
    pen.rectangle((x1 - 3, y1 - 3, x2 + 3, y2 + 3), outline=ink, width=2)
    return tile
