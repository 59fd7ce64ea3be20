"""Representations for notebooks: a picture with a text alternative, and tables."""

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from medgrape.errors import first_line
from medgrape.explain.film_evidence import FilmEvidence
from medgrape.explain.words import NOTICE

MimeBundle = tuple[dict[str, str], dict[str, Any]]  # data by MIME type, and metadata by MIME type
PIXELS, SHOWN = 1200, 860  # width in pixels of a picture that is stored in a notebook, and its displayed width


def show(explain: Callable[[], FilmEvidence], text: str, *, complete: bool) -> MimeBundle:
    """Return a picture of all evidence (``complete``) or of the film and classes alone, with a text alternative.

    If that fails, return only ``text`` and the error.
    """
    try:
        from medgrape.explain import render  # matplotlib is slow to import

        explanation = explain()
        picture = render.draw(explanation) if complete else render.draw_reading(explanation)
        if picture.width > PIXELS:
            picture = picture.resize((PIXELS, round(picture.height * PIXELS / picture.width)))
        file = io.BytesIO()
        picture.save(file, "PNG")
        png = base64.b64encode(file.getvalue()).decode("ascii")
        metadata = {"alt": _text_alternative(explanation), "width": SHOWN}
        return {"text/plain": text, "image/png": png}, {"image/png": metadata}
    except Exception as error:
        return {"text/plain": f"{text}\n(no picture: {type(error).__name__}: {first_line(error)})"}, {}


def _text_alternative(explanation: FilmEvidence) -> str:
    """Describe the picture in sentences."""
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    classes = ", ".join(f"{name.replace('_', ' ')} {probability:.0%}" for name, probability in ranked)
    findings = "; ".join(f"{evidence.concept.title}: {evidence.words}" for evidence in explanation.concepts)
    warnings = "".join(f" Warning: {text}" for text in explanation.warnings)
    return f"Chest X-ray of {explanation.film} pixels. Classes: {classes}. Findings: {findings}.{warnings} {NOTICE}"


def table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]], footer: str) -> str:
    """Return an HTML table; all texts are escaped."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p><b>{html.escape(heading)}</b></p><table><tr>{head}</tr>{body}</table><p>{html.escape(footer)}</p>"
