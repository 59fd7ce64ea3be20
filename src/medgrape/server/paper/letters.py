"""Words on paper: a typeface that is part of the file, and nothing that people typed taken for markup."""

import unicodedata
from functools import cache
from xml.sax.saxutils import escape

from reportlab.lib.colors import HexColor
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Paragraph

from medgrape.explain.render_text import legible, typeface

PLAIN, BOLD = "medgrape", "medgrape-bold"
INK, FAINT, RULE, AMBER = HexColor("#1A1A1F"), HexColor("#5C5C68"), HexColor("#C9C9D2"), HexColor("#FFF1CC")
UNPRINTABLE = "Letters that cannot be printed here stand as ?; reading.json has them."
_RIGHT_TO_LEFT = {"R", "AL"}


@cache
def _register() -> None:
    pdfmetrics.registerFont(TTFont(PLAIN, str(typeface(bold=False))))
    pdfmetrics.registerFont(TTFont(BOLD, str(typeface(bold=True))))
    pdfmetrics.registerFontFamily(PLAIN, normal=PLAIN, bold=BOLD, italic=PLAIN, boldItalic=BOLD)


@cache
def style(size: float, *, bold: bool = False, faint: bool = False, right: bool = False) -> ParagraphStyle:
    """How a text looks."""
    _register()
    return ParagraphStyle(
        f"{size}{bold}{faint}{right}", fontName=BOLD if bold else PLAIN, fontSize=size, leading=1.32 * size,
        textColor=FAINT if faint else INK, alignment=2 if right else 0, splitLongWords=True,
    )  # fmt: skip


def said(text: str) -> str:
    """What somebody typed, as it may stand in a paragraph: letters that can be printed, and no markup.

    Writing that runs from right to left would come out in the wrong order, which is worse than not at all.
    """
    printed = legible(_straight(text))
    return escape(printed) + (f" [{UNPRINTABLE}]" if printed.count("?") > text.count("?") else "")


def _straight(text: str) -> str:
    return "".join("?" if unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT else letter for letter in text)


def words(text: str, size: float = 8, *, bold: bool = False, faint: bool = False, right: bool = False) -> Paragraph:
    """A paragraph of plain text."""
    return Paragraph(said(text), style(size, bold=bold, faint=faint, right=right))


def marked_up(markup: str, size: float = 8, *, faint: bool = False) -> Paragraph:
    """A paragraph of our own markup, in which whatever people typed went through ``said``."""
    return Paragraph(markup, style(size, faint=faint))
