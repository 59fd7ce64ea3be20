"""What the model says in words and bars: the classes, the concepts that are outlined, and who listens to whom."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw

from medgrape.explain.explanation import ConceptEvidence, Exemplar, Explanation
from medgrape.explain.film_panel import MOST_ROWS, Marked
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
    font,
    framed,
    paragraph,
    shortened,
    stacked,
    stamped,
    title_of,
)
from medgrape.explain.maps import HEAT, SPREAD, disagreement, fitted, scale, seen
from medgrape.explain.words import CLEARLY, PERHAPS
from medgrape.geometry import FilmSize

TEXT, SEEN, UNSURE, TILE, GAP = 340, FilmSize(300, 320), FilmSize(220, 320), 196, 24
MOST_EXEMPLARS = 3
_FILMS = MOST_EXEMPLARS * TILE + (MOST_EXEMPLARS - 1) * 10
WIDTH = TEXT + SEEN.width + UNSURE.width + _FILMS + 3 * GAP
_LOW, _HIGH = -0.25, 1.5
_GROUNDS = ("#2A2A33", "#45454F", "#666672")


def columns_panel(widest: float) -> Image.Image:
    """What each column shows, with its scale of colours."""
    heads = [
        _head("Finding, and how strong it is", TEXT),
        _head("Where it is seen", SEEN.width, HEAT, ("as films without it", "with it")),
        _head("Where its prototypes disagree", UNSURE.width, SPREAD, ("agree", f"variance {widest:.2g}")),
        _head("Training films it is reminded of", _FILMS),
    ]
    return beside(heads, gap=GAP, low=True)


def _head(title: str, width: int, colours: str = "", ends: tuple[str, str] = ("", "")) -> Image.Image:
    head = paragraph(title, width, size=SMALL, bold=True, most=2)
    if not colours:
        return head
    left, letters = paragraph(ends[0], width, size=SMALL, ink=FAINT), font(SMALL)
    ImageDraw.Draw(left).text((width - 1, SMALL), ends[1], fill=FAINT, font=letters, anchor="rs")
    return stacked([head, scale(colours, width, 12), left], gap=4)


def concept_row(explanation: Explanation, concept: Marked, widest: float) -> Image.Image:
    """Everything about one concept on one film."""
    film, evidence = explanation.pixels, concept.evidence
    where = seen(film, evidence, fitted(explanation.film, SEEN))
    unsure = disagreement(film, evidence, fitted(explanation.film, UNSURE), widest)
    panels = [
        _words(concept),
        framed(where, SEEN.width, 0),
        framed(unsure, UNSURE.width, 0),
        _exemplars(concept),
    ]
    return beside(panels, gap=GAP)


def _words(concept: Marked) -> Image.Image:
    evidence = concept.evidence
    name = paragraph(concept.title, TEXT - 44, size=22, bold=True, most=3)
    line = Image.new("RGB", (TEXT, max(name.height, 32)), BACKGROUND)
    line.paste(name, (44, 0))
    stamped(line, badge(concept.letter, concept.ink, 32), (16, 16))
    told = [line, paragraph(evidence.words, TEXT, size=22, ink=INK if concept.seen else FAINT)]
    if evidence.is_informative:
        told.append(_meter(evidence.strength, concept.ink))
        told.append(paragraph(_figures(evidence), TEXT, size=SMALL, ink=FAINT, most=2))
    else:
        told.append(paragraph("What films score with and without it is alike, or not known.", TEXT, size=SMALL, most=2))
    told.append(paragraph(evidence.concept.description, TEXT, size=SMALL, ink=FAINT, most=5))
    return stacked(told, gap=8)


def _figures(evidence: ConceptEvidence) -> str:
    return f"score {evidence.score:.2f} (without {evidence.absent_score:.2f}, with {evidence.present_score:.2f})"


def _meter(strength: float, ink: str) -> Image.Image:
    """Where the film lies between films without the concept and films with it."""

    def across(value: float) -> int:
        return round((min(max(value, _LOW), _HIGH) - _LOW) / (_HIGH - _LOW) * (TEXT - 17)) + 8

    meter = Image.new("RGB", (TEXT, 48), BACKGROUND)
    pen = ImageDraw.Draw(meter)
    ends = (across(_LOW), across(PERHAPS), across(CLEARLY), across(_HIGH))
    for (left, right), ground in zip(pairwise(ends), _GROUNDS, strict=True):
        pen.rectangle((left, 6, right, 18), fill=ground)
    for value, words in ((0.0, "without it"), (1.0, "with it")):
        pen.line((across(value), 4, across(value), 26), fill=FAINT, width=1)
        pen.text((across(value), 42), words, fill=FAINT, font=font(SMALL), anchor="ms")
    stamped(meter, badge("", ink, 16), (across(strength), 12))
    return meter


def _exemplars(concept: Marked) -> Image.Image:
    shown = concept.evidence.exemplars[:MOST_EXEMPLARS]
    if not shown:
        words = paragraph("no film to show", _FILMS, ink=FAINT)
        return framed(words, _FILMS, words.height)
    tiles = beside([_exemplar(exemplar, concept.ink) for exemplar in shown], gap=10)
    sheet = Image.new("RGB", (_FILMS, tiles.height), BACKGROUND)
    sheet.paste(tiles, (0, 0))
    return sheet


def _exemplar(exemplar: Exemplar, ink: str) -> Image.Image:
    side = exemplar.thumbnail.shape[0]
    film = Image.fromarray(exemplar.thumbnail).convert("RGB").resize((TILE, TILE), Image.Resampling.BICUBIC)
    x1, y1, x2, y2 = exemplar.patch.moved(FilmSize(side, side), FilmSize(TILE, TILE)).corners
    pen = ImageDraw.Draw(film)
    pen.rectangle((x1 - 4, y1 - 4, x2 + 4, y2 + 4), outline="black", width=1)
    pen.rectangle((x1 - 3, y1 - 3, x2 + 3, y2 + 3), outline=ink, width=2)
    letters, like = font(SMALL), "like film "
    name = like + shortened(exemplar.film, letters, TILE - letters.getlength(like))
    told = (name, f"similarity {exemplar.similarity:.2f}")
    return stacked([film, *(paragraph(line, TILE, size=SMALL) for line in told)], gap=3)


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
        f"{concept.title}: {concept.evidence.words}", width - 40, ink=INK if concept.seen else FAINT, most=2
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
