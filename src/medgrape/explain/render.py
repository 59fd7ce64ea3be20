"""The evidence on one film as one picture."""

from collections import defaultdict
from pathlib import Path

from PIL import Image

from medgrape.explain.film_evidence import FilmEvidence
from medgrape.explain.film_panel import FILM, MOST_ROWS, ConceptMark, film_panel, mark_concepts
from medgrape.explain.layout import FAINT, SMALL, beside, bordered, paragraph, save_png, stacked, title_of
from medgrape.explain.maps import widest_spread
from medgrape.explain.panels import WIDTH, attention_panel, columns_panel, concept_row, key_panel, prediction_panel
from medgrape.explain.words import NOTICE

MARGIN = 32
_AMBER = "#F0B429"
_LEGEND = (
    "Dot: where the finding is strongest. Outline: at least half as strong, or strong enough for “perhaps”. "
    "Colours and scales are the same for all findings. Prototype: a pattern learnt from training films; "
    "box on a training film: the patch nearest to a prototype that answers strongly here."
)


def save_picture(explanation: FilmEvidence, path: Path) -> None:
    """Draw the evidence into a PNG file, atomically."""
    save_png(lambda: draw(explanation), path)


def draw(explanation: FilmEvidence) -> Image.Image:
    """Return the complete picture: warnings, film and classes, a row for each of the strongest concepts, the notice."""
    marks = mark_concepts(explanation)
    widest = widest_spread([mark.evidence for mark in marks])
    rows = [_rule(), columns_panel(widest), *(concept_row(explanation, mark, widest) for mark in marks)]
    legend = paragraph(_LEGEND, WIDTH, size=SMALL, ink=FAINT, most=2)
    footer = stacked([_rule(), paragraph(NOTICE, WIDTH, bold=True), legend], gap=8)
    return bordered(stacked([*_summary(explanation, marks), *rows, *_others(explanation), footer], gap=22), MARGIN)


def draw_reading(explanation: FilmEvidence) -> Image.Image:
    """Return the film and the classes alone."""
    footer = stacked([_rule(), paragraph(NOTICE, WIDTH, bold=True)], gap=8)
    return bordered(stacked([*_summary(explanation, mark_concepts(explanation)), footer], gap=22), MARGIN)


def _summary(explanation: FilmEvidence, marks: list[ConceptMark]) -> list[Image.Image]:
    """Return warnings, and the film beside classes, findings and attention."""
    texts = [f"Warning: {text}" for text in explanation.warnings]
    warnings = [paragraph(text, WIDTH - 24, ink="black", most=3, paper=_AMBER) for text in texts]
    width = WIDTH - FILM.width - MARGIN
    panels = [prediction_panel(explanation, width), key_panel(marks, width), attention_panel(explanation, marks, width)]
    film = beside([film_panel(explanation, marks), stacked(panels, gap=30)], gap=MARGIN)
    return [bordered(stacked(warnings), 12, _AMBER), film] if warnings else [film]


def _others(explanation: FilmEvidence) -> list[Image.Image]:
    """Return a sentence on the concepts without a row."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for evidence in explanation.concepts[MOST_ROWS:]:
        strength = f" {evidence.strength:.2f}" if evidence.is_informative else ""
        groups[evidence.words].append(title_of(evidence.concept) + strength)
    if not groups:
        return []
    scale = "Also looked for, with strength (0 as on films without it, 1 as on films with it); "
    lists = " ".join(f"{words}: {', '.join(names)}." for words, names in groups.items())
    return [_rule(), paragraph(scale + lists, WIDTH, size=SMALL, most=6)]


def _rule() -> Image.Image:
    return Image.new("RGB", (WIDTH, 1), "#45454F")
