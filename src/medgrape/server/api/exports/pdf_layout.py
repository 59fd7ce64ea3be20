"""A4 sheets, each with the notice, what it is about and its number."""

import io
import threading
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from PIL import Image as Pictures
from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate, Paragraph
from reportlab.platypus import Image as Plate

from medgrape import __version__
from medgrape.explain.layout import legible, typeface
from medgrape.explain.words import NOTICE

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


MARGIN, FOOT = 16 * mm, 20 * mm
WIDTH, HEIGHT = A4[0] - 2 * MARGIN, A4[1] - MARGIN - FOOT
PRESS = threading.Lock()
"""Held by whoever sets words and prints: reportlab's typefaces are one for all threads, and remember their letters."""


class _Numbered(Canvas):  # type: ignore[misc]
    """Puts the feet under the pages once it is known how many there are."""

    about = ""

    def __init__(self, *words: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*words, **options)
        self._pages: list[dict[str, Any]] = []

    def showPage(self) -> None:  # noqa: N802 (reportlab's name)
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        for number, page in enumerate(self._pages, 1):
            self.__dict__.update(page)
            self._foot(f"page {number} of {len(self._pages)}")
            super().showPage()
        super().save()

    def _foot(self, number: str) -> None:
        self.setStrokeColor(RULE)
        self.line(MARGIN, FOOT - 4 * mm, A4[0] - MARGIN, FOOT - 4 * mm)
        self.setFillColor(INK)
        self.setFont(BOLD, 8)
        self.drawString(MARGIN, FOOT - 8 * mm, NOTICE)
        self.setFillColor(FAINT)
        self.setFont(PLAIN, 7)
        self.drawCentredString(A4[0] / 2 + 10 * mm, FOOT - 8 * mm, self.about)
        self.drawRightString(A4[0] - MARGIN, FOOT - 8 * mm, number)


def printed(parts: Sequence[Flowable], *, title: str, about: str, author: str) -> bytes:
    """The parts one after the other on as many sheets as it takes."""
    out = io.BytesIO()
    kind = type("_Feet", (_Numbered,), {"about": about})
    document = BaseDocTemplate(
        out, pagesize=A4, title=title, author=author, creator=f"medgrape {__version__}", subject=NOTICE, lang="en",
    )  # fmt: skip
    frame = Frame(MARGIN, FOOT, WIDTH, HEIGHT, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
    document.addPageTemplates(PageTemplate(frames=[frame]))
    document.build(list(parts), canvasmaker=kind)
    return out.getvalue()


def plate(picture: Pictures.Image, width: float, height: float) -> Plate:
    """A picture, as large as fits."""
    scale = min(width / picture.width, height / picture.height)
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return Plate(out, picture.width * scale, picture.height * scale)
