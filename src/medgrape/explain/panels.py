"""Panels beside and below the film: classes, findings, attention, and a row for each of the strongest concepts."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw

from medgrape.explain.film_evidence import Exemplar, FilmEvidence
from medgrape.explain.film_panel import MOST_ROWS, ConceptMark
from medgrape.explain.layout import (
    BACKGROUND,
    FAINT,
    HEADING,
    HEADLINE,
    INK,
    NO_BREAK,
    PLAIN,
    SMALL,
    badge,
    beside,
    exemplar_tile,
    font,
    framed,
    paragraph,
    shortened,
    stacked,
    stamped,
    title_of,
)
from medgrape.explain.maps import HEAT, SPREAD, colour_scale, disagreement_picture, fitted, similarity_picture
from medgrape.explain.words import CLEARLY, PERHAPS
from medgrape.geometry import FilmSize

TEXT, SIMILARITY, DISAGREEMENT, TILE, GAP = 340, FilmSize(300, 320), FilmSize(220, 320), 196, 24
MOST_EXEMPLARS = 3
_EXEMPLARS = MOST_EXEMPLARS * TILE + (MOST_EXEMPLARS - 1) * 10
WIDTH = TEXT + SIMILARITY.width + DISAGREEMENT.width + _EXEMPLARS + 3 * GAP
_LOW, _HIGH = -0.25, 1.5
_METER_INKS = ("#2A2A33", "#45454F", "#666672")


def columns_panel(widest: float) -> Image.Image:
    """Return the headings of the columns, with their colour scales."""
    ends = "agree", f"variance {widest:.2g}"
    headings = [
        _column_heading("Finding, and how strong it is", TEXT),
        _column_heading("Where it is seen", SIMILARITY.width, HEAT, ("as films without it", "with it")),
        _column_heading("Where its prototypes disagree", DISAGREEMENT.width, SPREAD, ends),
        _column_heading("Training films it is reminded of", _EXEMPLARS),
    ]
    return beside(headings, gap=GAP, low=True)


def _column_heading(title: str, width: int, colours: str = "", ends: tuple[str, str] = ("", "")) -> Image.Image:
    heading = paragraph(title, width, size=SMALL, bold=True, most=2)
    if not colours:
        return heading
    labels = paragraph(ends[0], width, size=SMALL, ink=FAINT)
    ImageDraw.Draw(labels).text((width - 1, SMALL), ends[1], fill=FAINT, font=font(SMALL), anchor="rs")
    return stacked([heading, colour_scale(colours, width, 12), labels], gap=4)


def concept_row(explanation: FilmEvidence, mark: ConceptMark, widest: float) -> Image.Image:
    """Return one concept in words, its two maps, and its training films."""
    film, evidence, size = explanation.pixels, mark.evidence, explanation.film
    similarity = similarity_picture(film, evidence, fitted(size, SIMILARITY))
    disagreement = disagreement_picture(film, evidence, fitted(size, DISAGREEMENT), widest)
    panels = [framed(similarity, SIMILARITY.width, 0), framed(disagreement, DISAGREEMENT.width, 0)]
    return beside([_words(mark), *panels, _exemplars(mark)], gap=GAP)


def _words(mark: ConceptMark) -> Image.Image:
    evidence = mark.evidence
    name = paragraph(mark.title, TEXT - 44, size=22, bold=True, most=3)
    title = Image.new("RGB", (TEXT, max(name.height, 32)), BACKGROUND)
    title.paste(name, (44, 0))
    stamped(title, badge(mark.letter, mark.ink, 32), (16, 16))
    panels = [title, paragraph(evidence.words, TEXT, size=22, ink=INK if mark.seen else FAINT)]
    if evidence.is_informative:
        usual = f"(without {evidence.absent_score:.2f}, with {evidence.present_score:.2f})"
        scores = paragraph(f"score {evidence.score:.2f} {usual}", TEXT, size=SMALL, ink=FAINT, most=2)
        panels += [_meter(evidence.strength, mark.ink), scores]
    else:
        text = "What films score with and without it is alike, or not known."
        panels.append(paragraph(text, TEXT, size=SMALL, most=2))
    panels.append(paragraph(evidence.concept.description, TEXT, size=SMALL, ink=FAINT, most=5))
    return stacked(panels, gap=8)


def _meter(strength: float, ink: str) -> Image.Image:
    """Return the strength on a scale that marks films without and with the concept."""

    def across(value: float) -> int:
        return round((min(max(value, _LOW), _HIGH) - _LOW) / (_HIGH - _LOW) * (TEXT - 17)) + 8

    meter = Image.new("RGB", (TEXT, 48), BACKGROUND)
    pen = ImageDraw.Draw(meter)
    ends = pairwise((across(_LOW), across(PERHAPS), across(CLEARLY), across(_HIGH)))
    for (left, right), section_ink in zip(ends, _METER_INKS, strict=True):
        pen.rectangle((left, 6, right, 18), fill=section_ink)
    for value, words in ((0.0, "without it"), (1.0, "with it")):
        pen.line((across(value), 4, across(value), 26), fill=FAINT, width=1)
        pen.text((across(value), 42), words, fill=FAINT, font=font(SMALL), anchor="ms")
    stamped(meter, badge("", ink, 16), (across(strength), 12))
    return meter


def _exemplars(mark: ConceptMark) -> Image.Image:
    exemplars = mark.evidence.exemplars[:MOST_EXEMPLARS]
    if not exemplars:
        return paragraph("no film to show", _EXEMPLARS, ink=FAINT)
    tiles = beside([_exemplar(exemplar, mark.ink) for exemplar in exemplars], gap=10)
    sheet = Image.new("RGB", (_EXEMPLARS, tiles.height), BACKGROUND)
    sheet.paste(tiles, (0, 0))
    return sheet


def _exemplar(exemplar: Exemplar, ink: str) -> Image.Image:
    side = exemplar.thumbnail.shape[0]
    patch = exemplar.patch.moved(FilmSize(side, side), FilmSize(TILE, TILE))
    letters, prefix = font(SMALL), "like film "
    name = prefix + shortened(exemplar.film, letters, TILE - letters.getlength(prefix))
    captions = [paragraph(text, TILE, size=SMALL) for text in (name, f"similarity {exemplar.similarity:.2f}")]
    return stacked([exemplar_tile(exemplar.thumbnail, TILE, patch, ink), *captions], gap=3)


_NAME, _PER_CENT, _TRACK, _MUTED = 290, 84, "#2A2A33", "#7C7C8A"
_MOST_EDGES, _MOST_SPEAKERS, _LEAST_WEIGHT = 6, 3, 0.005


def _section(title: str, width: int, panels: Sequence[Image.Image]) -> Image.Image:
    return stacked([paragraph(title, width, size=HEADING, ink=FAINT, bold=True), *panels], gap=8)


def titles(explanation: FilmEvidence) -> dict[str, str]:
    """Return the titles of concepts and classes; a class has its name in words, with TB in capitals."""
    readable = {}
    for name in (*explanation.concept_names, *explanation.probabilities):
        text = " ".join("TB" if word == "tb" else word for word in name.replace("_", " ").split())
        readable[name] = text[:1].upper() + text[1:]
    return readable | {evidence.concept.name: title_of(evidence.concept) for evidence in explanation.concepts}


def per_cent(probability: float) -> str:
    """Format a probability; only exactly 0 and 1 are shown as 0 % and 100 %."""
    if not np.isfinite(probability):
        return "not known"
    if probability != round(probability) and not 0.005 <= probability < 0.995:
        return f"<{NO_BREAK}1{NO_BREAK}%" if probability < 0.5 else f">{NO_BREAK}99{NO_BREAK}%"
    return f"{probability * 100:.0f}{NO_BREAK}%"


def _bar(fraction: float, width: int, height: int, ink: str) -> Image.Image:
    bar = Image.new("RGB", (width, height), _TRACK)
    full = round(width * min(max(float(np.nan_to_num(fraction)), 0.0), 1.0))
    if full:
        ImageDraw.Draw(bar).rectangle((0, 0, full - 1, height), fill=ink)
    return bar


def prediction_panel(explanation: FilmEvidence, width: int) -> Image.Image:
    """Return the most probable class in large letters, and a bar for each class."""
    names = titles(explanation)
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -float(np.nan_to_num(item[1])))
    first, probability = ranked[0]
    lines = [paragraph(f"{names[first]}: {per_cent(probability)}", width, size=HEADLINE, bold=True, most=2)]
    lines += [_class_line(names[name], value, width, is_first=name == first) for name, value in ranked]
    return _section("The model's answer", width, lines)


def _class_line(name: str, probability: float, width: int, *, is_first: bool) -> Image.Image:
    ink = INK if is_first else FAINT
    bar = _bar(probability, width - _NAME - _PER_CENT - 20, 16, INK if is_first else _MUTED)
    space = Image.new("RGB", (bar.width, 4), BACKGROUND)
    value = paragraph(per_cent(probability), _PER_CENT, ink=ink, bold=is_first)
    name = shortened(name, font(PLAIN, bold=is_first), _NAME)
    return beside([paragraph(name, _NAME, ink=ink, bold=is_first), stacked([space, bar]), value], gap=10)


def key_panel(marks: list[ConceptMark], width: int) -> Image.Image:
    """Return the letter, colour and words of each outlined concept."""
    lines = []
    for mark in marks:
        words, ink = f"{mark.title}: {mark.evidence.words}", INK if mark.seen else FAINT
        text = paragraph(words, width - 40, ink=ink, most=2)
        line = Image.new("RGB", (width, max(text.height, 28)), BACKGROUND)
        line.paste(text, (40, max(0, (28 - text.height) // 2)))
        stamped(line, badge(mark.letter, mark.ink, 26), (13, 14))
        lines.append(line)
    return _section("Findings, outlined where seen", width, lines)


def attention_panel(explanation: FilmEvidence, marks: list[ConceptMark], width: int) -> Image.Image:
    """Return which concepts attend to which: all of them if they are few, otherwise the strongest edges."""
    weights, names = explanation.attention, explanation.concept_names
    if weights is None:
        lines = [paragraph("This model does not tell.", width, ink=FAINT)]
    elif len(names) <= MOST_ROWS:
        inks = {mark.evidence.concept.name: mark.ink for mark in marks}
        rows = [names.index(name) for name in inks if name in names]  # a concept that was added later has no row
        lines = [_attention_row(explanation, weights[row], row, inks, width) for row in rows]
    else:
        lines = _strongest_edges(explanation, weights, width)
    return _section("Which findings listen to each other", width, lines)


def _attention_row(
    explanation: FilmEvidence, weights: np.ndarray, row: int, inks: Mapping[str, str], width: int
) -> Image.Image:
    names, title = explanation.concept_names, titles(explanation)
    speakers = [int(column) for column in np.argsort(-weights, kind="stable") if weights[column] >= _LEAST_WEIGHT]
    lines = [
        f"{'itself' if column == row else title[names[column]]} {weights[column]:.2f}"
        for column in speakers[:_MOST_SPEAKERS]
    ]
    words = f"{title[names[row]]} listens to: {', '.join(lines) or 'nobody'}"
    bar, across = Image.new("RGB", (width, 10), _TRACK), 0.0
    pen = ImageDraw.Draw(bar)
    for column in speakers:
        end = across + float(weights[column]) * width
        pen.rectangle((round(across), 0, round(end) - 2, 10), fill=inks.get(names[column], _MUTED))
        across = end
    return stacked([paragraph(words, width, most=2), bar], gap=3)


def _strongest_edges(explanation: FilmEvidence, weights: np.ndarray, width: int) -> list[Image.Image]:
    names, title = explanation.concept_names, titles(explanation)
    others = np.where(np.eye(len(names), dtype=bool), 0.0, np.nan_to_num(weights))
    lines = []
    for place in np.argsort(-others, axis=None, kind="stable")[:_MOST_EDGES]:
        row, column = (int(index) for index in np.unravel_index(place, others.shape))
        if others[row, column] >= _LEAST_WEIGHT:
            words = paragraph(f"{title[names[row]]} listens to {title[names[column]]}", width - 170)
            value = paragraph(f"{others[row, column]:.2f}", 50, ink=FAINT)
            bar = stacked([Image.new("RGB", (100, 7), BACKGROUND), _bar(others[row, column], 100, 10, _MUTED)])
            lines.append(beside([words, value, bar], gap=10))
    return lines or [paragraph("On this film no finding listens to another.", width, ink=FAINT)]
