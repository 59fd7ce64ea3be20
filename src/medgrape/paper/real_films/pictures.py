"""Test films on which a map points into a box, and films on which it does not: drawn by lot, never chosen by eye."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from medgrape.concepts import ConceptSet, colour
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.evaluation.localisation import Pair
from medgrape.explain.layout import FAINT, SMALL, badge, beside, bordered, outlined, paragraph, stacked, stamped
from medgrape.explain.maps import HEAT, fitted, painted, relative, resized, upsampled
from medgrape.files import whole_file
from medgrape.geometry import Box, FilmSize
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun

COUNT = 4
ROOM = FilmSize(420, 420)
_MARGIN = 16
_GROUND = 60
"""The grey below a map without its film."""


def draw_pictures(
    loaded: LoadedRun, data: Path, pairs: Sequence[Pair], prefix: Path, *, seed: int
) -> dict[str, list[dict[str, str]]]:
    """``PREFIX-good.png`` and ``PREFIX-bad.png``, and which film and concept is on each, from left to right.

    Good is a hit of the mean map, bad a miss of it. A kind of which there is none has no picture. Beside each lies one
    of the maps and boxes alone (``PREFIX-good-maps.png``), which may be shown where the films may not.
    """
    reader, dataset, told = Reader(loaded), Dataset.load(data), dict[str, list[dict[str, str]]]()
    films = {film.id: film for film in dataset.films}
    for kind, hit in (("good", True), ("bad", False)):
        drawn = by_lot([pair for pair in pairs if pair.mean.hit is hit], seed)
        told[kind] = [{"film": pair.film, "concept": pair.concept} for pair in drawn]
        if drawn:
            panels = [_panels(reader, dataset, films[pair.film], pair) for pair in drawn]
            for suffix, row in zip(("", "-maps"), zip(*panels, strict=True), strict=True):
                sheet = stacked([beside(row, gap=_MARGIN), _key(dataset.concepts, kind)], gap=_MARGIN)
                _save(bordered(sheet, _MARGIN), prefix.with_name(f"{prefix.name}-{kind}{suffix}.png"))
    return told


def by_lot(pairs: Sequence[Pair], seed: int, count: int = COUNT) -> list[Pair]:
    """Some pairs that the seed alone chooses, whatever order they come in."""
    ordered = sorted(pairs, key=lambda pair: (pair.film, pair.concept))
    places = np.random.default_rng(seed).permutation(len(ordered))[:count]
    return [ordered[place] for place in places]


def _panels(reader: Reader, dataset: Dataset, film: FilmRecord, pair: Pair) -> tuple[Image.Image, Image.Image]:
    """The concept's mean map, with every box that somebody drew and the map's highest point: on the film, and alone."""
    explanation = reader.open(dataset.film_path(film)).explain()
    evidence = next(one for one in explanation.concepts if one.concept.name == pair.concept)
    size = fitted(film.size, ROOM)
    greys, heat = resized(explanation.pixels, size), upsampled(relative(evidence.mean), size)
    on_film, alone = (
        _annotated(Image.fromarray(painted(ground, heat, HEAT)), dataset, film, pair)
        for ground in (greys, np.full_like(greys, _GROUND))
    )
    return on_film, alone


def _annotated(panel: Image.Image, dataset: Dataset, film: FilmRecord, pair: Pair) -> Image.Image:
    size = FilmSize(*panel.size)
    for drawn in dataset.boxes_by_film[film.id]:
        outlined(panel, drawn.box.moved(film.size, size).corners, colour(dataset.concepts.index(drawn.concept)))
    x, y = pair.mean.point
    spot = Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5).moved(film.size, size).centre
    stamped(panel, badge("", colour(dataset.concepts.index(pair.concept)), 14), spot)
    told = paragraph(f"{film.id}: {dataset.concepts[pair.concept].title}", size.width, size=SMALL)
    return stacked([panel, told], gap=6)


def _key(concepts: ConceptSet, kind: str) -> Image.Image:
    """What the colours mean."""
    what = "inside" if kind == "good" else "outside"
    names = [
        paragraph(f"■ {concept.title}", 240, size=SMALL, ink=colour(place)) for place, concept in enumerate(concepts)
    ]
    words = (
        "Boxes that readers drew; the mean map of the finding named, coloured from its middle to its highest value; "
        f"dot: its highest point, {what} its boxes."
    )
    return stacked([paragraph(words, ROOM.width * 2, size=SMALL, ink=FAINT, most=3), beside(names)], gap=6)


def _save(sheet: Image.Image, path: Path) -> None:
    with whole_file(path) as draft:
        sheet.save(draft, "PNG")
