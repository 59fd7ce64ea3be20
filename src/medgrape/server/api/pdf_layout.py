"""A4 pages as PDF with footers, paragraphs and fonts."""

import io
import threading
import unicodedata
from collections.abc import Sequence
from functools import cache, partial
from typing import Any
from xml.sax.saxutils import escape

from PIL.Image import Image
from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate, Paragraph
from reportlab.platypus import Image as ImageFlowable

from medgrape import __version__
from medgrape.explain.layout import legible, typeface
from medgrape.explain.words import NOTICE

PLAIN, BOLD = "medgrape", "medgrape-bold"
INK, FAINT, RULE, AMBER = HexColor("#1A1A1F"), HexColor("#5C5C68"), HexColor("#C9C9D2"), HexColor("#FFF1CC")
UNPRINTABLE = "Letters that cannot be printed appear as ?; see reading.json."


@cache
def _register() -> None:
    pdfmetrics.registerFont(TTFont(PLAIN, str(typeface(bold=False))))
    pdfmetrics.registerFont(TTFont(BOLD, str(typeface(bold=True))))
    pdfmetrics.registerFontFamily(PLAIN, normal=PLAIN, bold=BOLD, italic=PLAIN, boldItalic=BOLD)


@cache
def _style(size: float, *, bold: bool = False, faint: bool = False, right: bool = False) -> ParagraphStyle:
    _register()
    return ParagraphStyle(
        f"{size}{bold}{faint}{right}", fontName=BOLD if bold else PLAIN, fontSize=size, leading=1.32 * size,
        textColor=FAINT if faint else INK, alignment=2 if right else 0, splitLongWords=True,
    )  # fmt: skip


def escaped(text: str) -> str:
    """Escape markup in typed text, and replace letters that cannot be printed by ?.

    Right-to-left letters are replaced too, because they would be printed in the wrong order.
    """
    left_to_right = "".join("?" if unicodedata.bidirectional(letter) in ("R", "AL") else letter for letter in text)
    printed = legible(left_to_right)
    return escape(printed) + (f" [{UNPRINTABLE}]" if printed.count("?") > text.count("?") else "")


def paragraph(text: str, size: float = 8, *, bold: bool = False, faint: bool = False, right: bool = False) -> Paragraph:
    """Return a paragraph of plain text."""
    return Paragraph(escaped(text), _style(size, bold=bold, faint=faint, right=right))


def markup(text: str, size: float = 8, *, faint: bool = False) -> Paragraph:
    """Return a paragraph of markup, in which typed text went through ``escaped``."""
    return Paragraph(text, _style(size, faint=faint))


MARGIN, FOOT = 16 * mm, 20 * mm
WIDTH, HEIGHT = A4[0] - 2 * MARGIN, A4[1] - MARGIN - FOOT
PRINT_LOCK = threading.Lock()
"""Hold it while paragraphs are made and printed: all threads share reportlab's fonts, which have a state."""


class _NumberedCanvas(Canvas):  # type: ignore[misc]
    """Canvas that draws the footers at the end, when the number of pages is known."""

    def __init__(self, *arguments: Any, about: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.about, self._pages = about, list[dict[str, Any]]()

    def showPage(self) -> None:  # noqa: N802 (reportlab's name)
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        for number, page in enumerate(self._pages, 1):
            self.__dict__.update(page)
            self.setStrokeColor(RULE)
            self.line(MARGIN, FOOT - 4 * mm, A4[0] - MARGIN, FOOT - 4 * mm)
            self.setFillColor(INK)
            self.setFont(BOLD, 8)
            self.drawString(MARGIN, FOOT - 8 * mm, NOTICE)
            self.setFillColor(FAINT)
            self.setFont(PLAIN, 7)
            self.drawCentredString(A4[0] / 2 + 10 * mm, FOOT - 8 * mm, self.about)
            self.drawRightString(A4[0] - MARGIN, FOOT - 8 * mm, f"page {number} of {len(self._pages)}")
            super().showPage()
        super().save()


def build_pdf(parts: Sequence[Flowable], *, title: str, about: str, author: str) -> bytes:
    """Return a PDF of the parts, on as many pages as needed."""
    out = io.BytesIO()
    document = BaseDocTemplate(
        out, pagesize=A4, title=title, author=author, creator=f"medgrape {__version__}", subject=NOTICE, lang="en",
    )  # fmt: skip
    frame = Frame(MARGIN, FOOT, WIDTH, HEIGHT, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
    document.addPageTemplates(PageTemplate(frames=[frame]))
    document.build(list(parts), canvasmaker=partial(_NumberedCanvas, about=about))
    return out.getvalue()


def image(picture: Image, width: float, height: float) -> ImageFlowable:
    """Return a picture as large as fits."""
    scale = min(width / picture.width, height / picture.height)
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return ImageFlowable(out, picture.width * scale, picture.height * scale)
