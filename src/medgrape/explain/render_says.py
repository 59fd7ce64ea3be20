"""What the model says in words and bars: the classes, the concepts that are outlined, and who listens to whom."""

from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

from medgrape.explain.explanation import Explanation
from medgrape.explain.listing import in_words
from medgrape.explain.render_film import MOST_ROWS, Marked
from medgrape.explain.render_layout import badge, beside, stacked, stamped
from medgrape.explain.render_text import (
    BACKGROUND,
    FAINT,
    HEADING,
    HEADLINE,
    INK,
    NO_BREAK,
    PLAIN,
    font,
    paragraph,
    shortened,
    title_of,
)

_NAME, _PER_CENT, _TRACK, _MUTED = 290, 84, "#2A2A33", "#7C7C8A"
_CAPITALS = {"tb": "TB"}
_MOST_EDGES, _MOST_SPEAKERS, _HEARD = 6, 3, 0.005


def heading(text: str, width: int) -> Image.Image:
    """What a part of the picture answers."""
    return paragraph(text, width, size=HEADING, ink=FAINT, bold=True)


def titles(explanation: Explanation) -> dict[str, str]:
    """Names of concepts and classes as people read them."""
    known = {evidence.concept.name: title_of(evidence.concept) for evidence in explanation.concepts}
    return {name: _spoken(name) for name in (*explanation.concept_names, *explanation.probabilities)} | known


def _spoken(name: str) -> str:
    words = " ".join(_CAPITALS.get(word, word) for word in name.replace("_", " ").split())
    return words[:1].upper() + words[1:]


def per_cent(probability: float) -> str:
    """A probability as people say it; none is called certain that is not."""
    if not np.isfinite(probability):
        return "not known"
    if probability != round(probability) and not 0.005 <= probability < 0.995:
        return f"<{NO_BREAK}1{NO_BREAK}%" if probability < 0.5 else f">{NO_BREAK}99{NO_BREAK}%"
    return f"{probability * 100:.0f}{NO_BREAK}%"


def _bar(share: float, width: int, height: int, ink: str) -> Image.Image:
    bar = Image.new("RGB", (width, height), _TRACK)
    full = round(width * min(max(float(np.nan_to_num(share)), 0.0), 1.0))
    if full:
        ImageDraw.Draw(bar).rectangle((0, 0, full - 1, height), fill=ink)
    return bar


def prediction_panel(explanation: Explanation, width: int) -> Image.Image:
    """The most likely class in large letters, and a bar for each."""
    names = titles(explanation)
    ranked = sorted(explanation.probabilities.items(), key=lambda entry: -float(np.nan_to_num(entry[1])))
    first, probability = ranked[0]
    lines = [paragraph(f"{names[first]}: {per_cent(probability)}", width, size=HEADLINE, bold=True, most=2)]
    lines += [_class_line(names[name], value, width, leads=name == first) for name, value in ranked]
    return stacked([heading("The model's answer", width), *lines], gap=8)


def _class_line(name: str, probability: float, width: int, *, leads: bool) -> Image.Image:
    ink = INK if leads else FAINT
    bar = _bar(probability, width - _NAME - _PER_CENT - 20, 16, INK if leads else _MUTED)
    top = Image.new("RGB", (bar.width, 4), BACKGROUND)
    told = paragraph(per_cent(probability), _PER_CENT, ink=ink, bold=leads)
    name = shortened(name, font(PLAIN, bold=leads), _NAME)
    return beside([paragraph(name, _NAME, ink=ink, bold=leads), stacked([top, bar]), told], gap=10)


def key_panel(shown: list[Marked], width: int) -> Image.Image:
    """Which letter and colour on the film stands for which concept."""
    return stacked(
        [heading("Findings, outlined where seen", width), *(_key_line(concept, width) for concept in shown)], gap=8
    )


def _key_line(concept: Marked, width: int) -> Image.Image:
    told = paragraph(
        f"{concept.title}: {in_words(concept.evidence)}", width - 40, ink=INK if concept.seen else FAINT, most=2
    )
    line = Image.new("RGB", (width, max(told.height, 28)), BACKGROUND)
    line.paste(told, (40, max(0, (28 - told.height) // 2)))
    stamped(line, badge(concept.letter, concept.ink, 26), (13, 14))
    return line


def attention_panel(explanation: Explanation, shown: list[Marked], width: int) -> Image.Image:
    """Who listens to whom: everybody where there are few concepts, else the strongest voices."""
    title = heading("Which findings listen to each other", width)
    weights = explanation.attention
    if weights is None:
        lines = [paragraph("This model does not tell.", width, ink=FAINT)]
    elif len(explanation.concept_names) <= MOST_ROWS:
        inks = {concept.evidence.concept.name: concept.ink for concept in shown}
        lines = [_listener(explanation, weights[row], row, inks, width) for row in _order(explanation, shown)]
    else:
        lines = _strongest_edges(explanation, weights, width)
    return stacked([title, *lines], gap=8)


def _order(explanation: Explanation, shown: list[Marked]) -> list[int]:
    """Rows of the attention, in the order of the letters; a concept that was added later has none."""
    names = [concept.evidence.concept.name for concept in shown]
    return [explanation.concept_names.index(name) for name in names if name in explanation.concept_names]


def _listener(
    explanation: Explanation, weights: np.ndarray, row: int, inks: Mapping[str, str], width: int
) -> Image.Image:
    names, title = explanation.concept_names, titles(explanation)
    speakers = [int(place) for place in np.argsort(-weights, kind="stable") if weights[place] >= _HEARD]
    told = [f"{'itself' if who == row else title[names[who]]} {weights[who]:.2f}" for who in speakers[:_MOST_SPEAKERS]]
    words = f"{title[names[row]]} listens to: {', '.join(told) or 'nobody'}"
    bar, across = Image.new("RGB", (width, 10), _TRACK), 0.0
    pen = ImageDraw.Draw(bar)
    for who in speakers:
        end = across + float(weights[who]) * width
        pen.rectangle((round(across), 0, round(end) - 2, 10), fill=inks.get(names[who], _MUTED))
        across = end
    return stacked([paragraph(words, width, most=2), bar], gap=3)


def _strongest_edges(explanation: Explanation, weights: np.ndarray, width: int) -> list[Image.Image]:
    names, title = explanation.concept_names, titles(explanation)
    others = np.where(np.eye(len(names), dtype=bool), 0.0, np.nan_to_num(weights))
    best = [np.unravel_index(place, others.shape) for place in np.argsort(-others, axis=None, kind="stable")]
    edges = [(int(row), int(column)) for row, column in best[:_MOST_EDGES] if others[row, column] >= _HEARD]
    if not edges:
        return [paragraph("On this film no finding listens to another.", width, ink=FAINT)]
    return [
        beside(
            [
                paragraph(f"{title[names[row]]} listens to {title[names[column]]}", width - 170),
                paragraph(f"{others[row, column]:.2f}", 50, ink=FAINT),
                stacked([Image.new("RGB", (100, 7), BACKGROUND), _bar(others[row, column], 100, 10, _MUTED)]),
            ],
            gap=10,
        )
        for row, column in edges
    ]
