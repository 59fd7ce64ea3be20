"""One row a concept: what it is and how strong, where it is seen, where it is unsure, what it looks like elsewhere."""

from itertools import pairwise

from PIL import Image, ImageDraw

from medgrape.explain.explanation import ConceptEvidence, Exemplar, Explanation
from medgrape.explain.listing import in_words, tells
from medgrape.explain.render_film import Marked
from medgrape.explain.render_layout import badge, beside, framed, stacked, stamped
from medgrape.explain.render_maps import HEAT, SPREAD, disagreement, fitted, scale, seen
from medgrape.explain.render_text import BACKGROUND, FAINT, INK, SMALL, font, paragraph, shortened
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
    told = [line, paragraph(in_words(evidence), TEXT, size=22, ink=INK if concept.seen else FAINT)]
    if tells(evidence):
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
