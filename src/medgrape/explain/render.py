"""The evidence on one film as one picture that needs no manual."""

from pathlib import Path

from PIL import Image

from medgrape.errors import UserError
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_panel import FILM, MOST_ROWS, Marked, film_panel, marked
from medgrape.explain.layout import FAINT, SMALL, beside, bordered, paragraph, stacked, title_of
from medgrape.explain.maps import widest_spread
from medgrape.explain.panels import WIDTH, attention_panel, columns_panel, concept_row, key_panel, prediction_panel
from medgrape.explain.words import NOTICE
from medgrape.files import whole_file

MARGIN = 32
_AMBER = "#F0B429"
_LEGEND = (
    "Dot: where the finding is strongest. Outline: at least half as strong, or strong enough for “perhaps”. "
    "Colours and scales are the same for all findings. Prototype: a pattern learnt from training films; "
    "box on a training film: the patch nearest to a prototype that answers strongly here."
)


class PictureError(UserError):
    """A picture that cannot be kept under the name that was asked for."""


def save_picture(explanation: Explanation, path: Path) -> None:
    """Draw the evidence into a PNG file, which is whole or not there."""
    if path.suffix.lower() != ".png":
        raise PictureError(f"The evidence is drawn as PNG; name the file {path.with_suffix('.png').name}.")
    picture = draw(explanation)
    with whole_file(path) as draft:
        picture.save(draft, "PNG")


def draw(explanation: Explanation) -> Image.Image:
    """The whole picture: warnings, film and answer, a row for each of the strongest concepts, the notice."""
    shown = marked(explanation)
    parts = [
        *_warnings(explanation),
        beside([film_panel(explanation, shown), _answer(explanation, shown)], gap=MARGIN),
        *_rows(explanation, shown),
        _footer(),
    ]
    return bordered(stacked(parts, gap=22), MARGIN)


def draw_reading(explanation: Explanation) -> Image.Image:
    """The film and the answer alone, for who only wants to know what is where."""
    shown = marked(explanation)
    notice = stacked([_line(), paragraph(NOTICE, WIDTH, bold=True)], gap=8)
    panels = beside([film_panel(explanation, shown), _answer(explanation, shown)], gap=MARGIN)
    return bordered(stacked([*_warnings(explanation), panels, notice], gap=22), MARGIN)


def _warnings(explanation: Explanation) -> list[Image.Image]:
    if not explanation.warnings:
        return []
    texts = [
        paragraph(f"Warning: {text}", WIDTH - 24, ink="black", most=3, paper=_AMBER) for text in explanation.warnings
    ]
    strip = stacked(texts)
    return [bordered(strip, 12, _AMBER)]


def _answer(explanation: Explanation, shown: list[Marked]) -> Image.Image:
    width = WIDTH - FILM.width - MARGIN
    panels = [prediction_panel(explanation, width), key_panel(shown, width)]
    return stacked([*panels, attention_panel(explanation, shown, width)], gap=30)


def _rows(explanation: Explanation, shown: list[Marked]) -> list[Image.Image]:
    widest = widest_spread([concept.evidence for concept in shown])
    rows = [concept_row(explanation, concept, widest) for concept in shown]
    return [_line(), columns_panel(widest), *rows, *_others(explanation)]


def _others(explanation: Explanation) -> list[Image.Image]:
    """The concepts without a row of their own, in a sentence."""
    rest = explanation.concepts[MOST_ROWS:]
    if not rest:
        return []
    told: dict[str, list[str]] = {}
    for other in rest:
        strength = f" {other.strength:.2f}" if other.is_informative else ""
        told.setdefault(other.words, []).append(title_of(other.concept) + strength)
    groups = [f"{words}: {', '.join(names)}." for words, names in told.items()]
    scale = "Also looked for, with strength (0 as on films without it, 1 as on films with it); "
    return [_line(), paragraph(scale + " ".join(groups), WIDTH, size=SMALL, most=6)]


def _line() -> Image.Image:
    return Image.new("RGB", (WIDTH, 1), "#45454F")


def _footer() -> Image.Image:
    notice = paragraph(NOTICE, WIDTH, bold=True)
    return stacked([_line(), notice, paragraph(_LEGEND, WIDTH, size=SMALL, ink=FAINT, most=2)], gap=8)
