"""Panels put side by side and under each other: nothing can lie on top of anything else."""

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFilter

from medgrape.explain.render_text import BACKGROUND, font

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
