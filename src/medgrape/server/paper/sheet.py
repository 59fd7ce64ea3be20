"""A4 sheets, each with the notice, what it is about and its number."""

import io
import threading
from collections.abc import Sequence
from typing import Any

from PIL import Image as Pictures
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate
from reportlab.platypus import Image as Plate

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server.paper.letters import BOLD, FAINT, INK, PLAIN, RULE

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
