"""How things show themselves in a notebook: a picture with words for who cannot see it, or the words alone."""

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from medgrape.errors import first_line
from medgrape.explain.explanation import Explanation
from medgrape.explain.words import NOTICE

if TYPE_CHECKING:
    from PIL import Image

Bundle = tuple[dict[str, str], dict[str, Any]]
"""What Jupyter asks for: the thing in several formats, and how to show each."""
PIXELS, SHOWN = 1200, 860
"""Width of a picture as it is stored in a notebook, and as it is shown: sharp on fine screens, and no megabytes."""


def explained(explanation: Explanation) -> Bundle:
    """The whole evidence."""

    def drawn() -> tuple["Image.Image", str]:
        from medgrape.explain.render import draw  # matplotlib is slow to import

        return draw(explanation), in_sentences(explanation)

    return pictured(drawn, repr(explanation))


def read(explain: Callable[[], Explanation], words: str) -> Bundle:
    """A film with its findings, its classes and what a person drew on it."""

    def drawn() -> tuple["Image.Image", str]:
        from medgrape.explain.render import draw_reading  # matplotlib is slow to import

        explanation = explain()
        return draw_reading(explanation), in_sentences(explanation)

    return pictured(drawn, words)


def pictured(draw: Callable[[], tuple["Image.Image", str]], words: str) -> Bundle:
    """A picture with what it shows, for who cannot see it, and ``words`` for a terminal.

    What goes wrong while drawing must not take the cell with it: then the words say so.
    """
    try:
        picture, told = draw()
        return {"text/plain": words, "image/png": _png(picture)}, {"image/png": {"alt": told, "width": SHOWN}}
    except Exception as error:
        problem = f"{words}\n(no picture: {type(error).__name__}: {first_line(error)})"
        return {"text/plain": problem}, {}


def in_short(explanation: Explanation) -> str:
    """One line, for a terminal."""
    found = ", ".join(f"{one.concept.name}: {one.words}" for one in explanation.concepts[:4])
    return f"Explanation({shares(explanation.probabilities.items())}; {found})"


def in_sentences(explanation: Explanation) -> str:
    """What the picture shows."""
    classes = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in _ranked(explanation))
    found = "; ".join(f"{one.concept.title}: {one.words}" for one in explanation.concepts)
    warnings = "".join(f" Warning: {text}" for text in explanation.warnings)
    return f"Chest X-ray of {explanation.film} pixels. Classes: {classes}. Findings: {found}.{warnings} {NOTICE}"


def shares(probabilities: Iterable[tuple[str, float]]) -> str:
    """The likeliest classes."""
    ranked = sorted(probabilities, key=lambda one: -one[1])
    told = ", ".join(f"{name} {share:.0%}" for name, share in ranked[:3])
    return told + (", ..." if len(ranked) > 3 else "")


def table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """A small table in HTML; nothing that stands in it is taken for HTML."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    end = f"<p>{html.escape(below)}</p>" if below else ""
    return f"<p><b>{html.escape(heading)}</b></p><table><tr>{head}</tr>{body}</table>{end}"


def _ranked(explanation: Explanation) -> list[tuple[str, float]]:
    return sorted(explanation.probabilities.items(), key=lambda one: -one[1])


def _png(picture: "Image.Image") -> str:
    if picture.width > PIXELS:
        picture = picture.resize((PIXELS, round(picture.height * PIXELS / picture.width)))
    kept = io.BytesIO()
    picture.save(kept, "PNG")
    return base64.b64encode(kept.getvalue()).decode("ascii")
