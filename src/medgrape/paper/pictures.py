"""Pictures from our own runs: maps of all methods on some films, a correction, a warning, hits and misses of a map.

Films are chosen by a rule, evenly spaced or at random, never by eye.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image

from medgrape.baselines.methods import Baseline
from medgrape.concepts import ConceptSet, colour
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.evaluation.evaluate import Loaded
from medgrape.evaluation.localisation import Pair, box_energy, boxes_of
from medgrape.explain.layout import FAINT, SMALL, badge, beside, bordered, framed, outlined, paragraph, stacked, stamped
from medgrape.explain.maps import HEAT, fitted, painted, relative, resized, upsampled
from medgrape.files import whole_file
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.paper.measures import evenly_spaced
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun
from medgrape.safety.claims import most_frequent_concept

FILMS, QUALITY = 3, 88
SMALL_ROOM, LARGE_ROOM = FilmSize(260, 260), FilmSize(420, 420)
_GAP, _LETTER, _DOT, _IN_ROW = 12, 22, 14, 4
_BOX, _RIGHT, _WRONG = "#56B4E9", colour(1), colour(5)


@dataclass(frozen=True)
class Compared:
    """A film, its boxes of the finding, and the map of each method."""

    film: FilmRecord
    pixels: UInt8[np.ndarray, "side side"]
    boxes: tuple[Box, ...]
    maps: Mapping[str, Float[np.ndarray, "h w"]]
    """By the method's title."""


def draw_methods(
    runs: Mapping[str, Loaded], data: Path, folder: Path, main: Loaded, name: str = "pictures"
) -> dict[str, Any]:
    """Draw all pictures as ``NAME-*.jpg`` in ``folder``; the correction and the warning are those of ``main``."""
    dataset = Dataset.load(data)
    concept = most_frequent_concept(dataset)
    cached = cached_films(main.run.config, dataset, data)
    boxed = [
        place
        for place in cached.readable()
        if concept is not None and (film := dataset.pictured[place]).split == "test" and _boxes(dataset, film, concept)
    ]
    if concept is None or not boxed:
        return {"pictures": [], "why": "No test film has a box of the finding that training boxes show most often."}
    films = []
    for place in evenly_spaced(boxed, FILMS):
        film, pixels = dataset.pictured[place], cached[place]
        maps = {title: _map(loaded, pixels, concept) for title, loaded in runs.items()}
        films.append(Compared(film, pixels, _boxes(dataset, film, concept), maps))
    title = dataset.concepts[concept].title
    sheets = [
        (
            "maps",
            _maps(films),
            f"Maps of {title}, each from its middle to its highest value. Blue: the boxes drawn. The figures: "
            "share of the map's energy inside them, and of the film's area.",
        ),
        (
            "points",
            _points(films),
            f"Where each method's map of {title} is highest; those at one place stand side by side. Blue: the boxes.",
        ),
        *_corrections(main, dataset, films, concept),
    ]
    pictures = []
    for kind, sheet, caption in sheets:
        path = folder / f"{name}-{kind}.jpg"
        with whole_file(path) as draft:
            sheet.save(draft, "JPEG", quality=QUALITY)
        pictures.append({"file": path.name, "caption": caption})
    return {"pictures": pictures, "films": [compared.film.id for compared in films]}


def _boxes(dataset: Dataset, film: FilmRecord, concept: str) -> tuple[Box, ...]:
    return tuple(box for box in boxes_of(dataset, film, concept) if box.clipped(film.size) is not None)


@torch.no_grad()
def _map(loaded: Loaded, pixels: UInt8[np.ndarray, "side side"], concept: str) -> Float[np.ndarray, "h w"]:
    model, row = loaded.run.model, loaded.run.concepts.index(concept)
    greys = torch.from_numpy(pixels.copy()).float().div(255.0)[None, None]
    maps = model.read(greys).maps if isinstance(model, Baseline) else model.read(greys)[1].mean
    return np.asarray(maps[0, row].numpy(), np.float64)


def _maps(films: Sequence[Compared]) -> Image.Image:
    """A row for each film: the film with its boxes, then the map of each method over it."""
    rows = []
    for number, compared in enumerate(films):
        size = fitted(compared.film.size, SMALL_ROOM)
        greys = resized(compared.pixels, size)
        panels = {"the film": _with_boxes(_grey(greys), compared.film, compared.boxes, _BOX, 2)}
        for title, scores in compared.maps.items():
            panel = _with_boxes(_heat(greys, scores), compared.film, compared.boxes, _BOX, 2)
            energy = box_energy(scores, compared.film, "", compared.boxes)
            text = f"{100 * energy.share:.0f} % of {100 * energy.area:.0f} %"
            label = bordered(paragraph(text, 130, size=SMALL), 3)
            panel.paste(label, (4, panel.height - label.height - 4))
            panels[title] = panel
        if not number:  # titles stand above the first row only
            panels = {
                title: stacked(
                    [framed(paragraph(title, panel.width, size=SMALL, ink=FAINT), panel.width, 22), panel], gap=4
                )
                for title, panel in panels.items()
            }
        rows.append(beside(list(panels.values()), gap=_GAP, low=True))
    return bordered(stacked(rows, gap=_GAP), _GAP)


def _points(films: Sequence[Compared]) -> Image.Image:
    """Each film with one dot for each method."""
    names = list(films[0].maps)
    panels = []
    for compared in films:
        film, size = compared.film, fitted(compared.film.size, LARGE_ROOM)
        panel = _with_boxes(_grey(resized(compared.pixels, size)), film, compared.boxes, _BOX, 2)
        taken: list[tuple[float, float]] = []
        for place, name in enumerate(names):
            x, y = _on_panel(_peak(compared.maps[name], film), film, size)
            while any(abs(x - other) < _LETTER and abs(y - high) < _LETTER for other, high in taken):
                x += _LETTER  # stand beside a dot at the same place
            taken.append((x, y))
            stamped(panel, badge(chr(65 + place), colour(place), _LETTER), (x, y))
        panels.append(panel)
    key = [paragraph(f"{chr(65 + n)}  {name}", 320, size=SMALL, ink=colour(n)) for n, name in enumerate(names)]
    rows = [beside(key[start : start + _IN_ROW]) for start in range(0, len(key), _IN_ROW)]
    return bordered(stacked([beside(panels, gap=_GAP), stacked(rows, gap=4)], gap=_GAP), _GAP)


def _corrections(
    loaded: Loaded, dataset: Dataset, films: Sequence[Compared], concept: str
) -> Iterator[tuple[str, Image.Image, str]]:
    """Name, picture and caption of a correction, and of the first warning at any wrong claim on these films."""
    if not isinstance(loaded, LoadedRun):
        return
    reader = Reader(loaded)
    studies = [reader.open(dataset.film_path(compared.film)) for compared in films]
    before, film, box = studies[0], films[0].film, films[0].boxes[0]
    after = before.apply(box, concept, confirmed=True)
    row, size = before.original.concepts.index(concept), fitted(film.size, LARGE_ROOM)
    panels = []
    for title, study in (("before", before), ("after the box", after)):
        scores = study.evidence.mean[row].numpy()
        panel = _heat(resized(study.film.pixels, size), scores)
        stamped(panel, badge("", colour(0), _DOT), _on_panel(_peak(scores, film), film, size))
        panels.append(stacked([_with_boxes(panel, film, [box], _RIGHT), paragraph(title, 400, size=SMALL)], gap=6))
    shares = (f"{name} {share:.2f} to {after.prediction[name]:.2f}" for name, share in before.prediction.items())
    caption = f"Left: the map as the model saw it. Right: after a reader drew the box. Classes: {', '.join(shares)}."
    yield "correction", bordered(beside(panels, gap=_GAP), _GAP), caption
    others = [name for name in dataset.concepts.names if name != concept]
    claims = ((place, box, claim) for place, one in enumerate(films) for box in one.boxes for claim in others)
    for place, box, claim in claims:
        check = studies[place].check(box, claim)
        if check.mismatch:
            claimed = f"Somebody draws this box and says it shows {dataset.concepts[claim].title}."
            text = [
                paragraph(claimed, 420, size=SMALL, most=4),
                paragraph(check.reason, 420, size=SMALL, ink=_WRONG, most=8),
            ]
            film = films[place].film
            pixels = resized(studies[place].film.pixels, fitted(film.size, LARGE_ROOM))
            panels = [_with_boxes(_grey(pixels), film, [box], _WRONG), stacked(text, gap=8)]
            yield "warning", bordered(beside(panels, gap=_GAP), _GAP), f"{claimed} {check.reason}"
            return


def _grey(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels).convert("RGB")


def _heat(greys: np.ndarray, scores: np.ndarray) -> Image.Image:
    """The map, from its middle to its highest value, over the film."""
    size = FilmSize(greys.shape[1], greys.shape[0])
    return Image.fromarray(painted(greys, upsampled(relative(scores), size), HEAT))


def _with_boxes(panel: Image.Image, film: FilmRecord, boxes: Sequence[Box], ink: str, width: int = 3) -> Image.Image:
    for box in boxes:
        outlined(panel, box.moved(film.size, FilmSize(*panel.size)).corners, ink, width)
    return panel


def _peak(scores: np.ndarray, film: FilmRecord) -> tuple[float, float]:
    return peak(scores, PatchGrid(film.size, *scores.shape))


def _on_panel(point: tuple[float, float], film: FilmRecord, size: FilmSize) -> tuple[float, float]:
    """A point of the film in pixels of the picture."""
    x, y = point
    return Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5).moved(film.size, size).centre


COUNT = 4
_MARGIN = 16
_GROUND = 60
"""Grey below a map without its film."""


def draw_hits(
    loaded: LoadedRun, data: Path, pairs: Sequence[Pair], prefix: Path, *, seed: int
) -> dict[str, list[dict[str, str]]]:
    """Draw hits and misses of the mean map as ``PREFIX-good.png`` and ``PREFIX-bad.png``, and return what they show.

    A kind without films has no picture. ``PREFIX-good-maps.png`` and ``PREFIX-bad-maps.png`` have maps and boxes alone,
    which may be published where the films may not.
    """
    reader, dataset, drawn = Reader(loaded), Dataset.load(data), dict[str, list[dict[str, str]]]()
    films = {film.id: film for film in dataset.films}
    for kind, hit in (("good", True), ("bad", False)):
        chosen = random_pairs([pair for pair in pairs if pair.mean.hit is hit], seed)
        drawn[kind] = [{"film": pair.film, "concept": pair.concept} for pair in chosen]
        if chosen:
            panels = [_hit_panels(reader, dataset, films[pair.film], pair) for pair in chosen]
            for suffix, row in zip(("", "-maps"), zip(*panels, strict=True), strict=True):
                sheet = stacked([beside(row, gap=_MARGIN), _key(dataset.concepts, kind)], gap=_MARGIN)
                with whole_file(prefix.with_name(f"{prefix.name}-{kind}{suffix}.png")) as draft:
                    bordered(sheet, _MARGIN).save(draft, "PNG")
    return drawn


def random_pairs(pairs: Sequence[Pair], seed: int, count: int = COUNT) -> list[Pair]:
    """Choose some pairs at random, whatever order they come in."""
    ordered = sorted(pairs, key=lambda pair: (pair.film, pair.concept))
    places = np.random.default_rng(seed).permutation(len(ordered))[:count]
    return [ordered[place] for place in places]


def _hit_panels(reader: Reader, dataset: Dataset, film: FilmRecord, pair: Pair) -> tuple[Image.Image, Image.Image]:
    """The mean map of the concept with all boxes and its highest point: on the film, and alone."""
    explanation = reader.open(dataset.film_path(film)).explain()
    evidence = next(concept for concept in explanation.concepts if concept.concept.name == pair.concept)
    size = fitted(film.size, LARGE_ROOM)
    greys = resized(explanation.pixels, size)
    ink = colour(dataset.concepts.index(pair.concept))
    caption = paragraph(f"{film.id}: {dataset.concepts[pair.concept].title}", size.width, size=SMALL)

    def annotated(ground: np.ndarray) -> Image.Image:
        panel = _heat(ground, evidence.mean)
        for drawn in dataset.boxes_by_film[film.id]:
            _with_boxes(panel, film, [drawn.box], colour(dataset.concepts.index(drawn.concept)))
        stamped(panel, badge("", ink, _DOT), _on_panel(pair.mean.point, film, size))
        return stacked([panel, caption], gap=6)

    return annotated(greys), annotated(np.full_like(greys, _GROUND))


def _key(concepts: ConceptSet, kind: str) -> Image.Image:
    """What the colours mean."""
    what = "inside" if kind == "good" else "outside"
    names = [
        paragraph(f"■ {concept.title}", 240, size=SMALL, ink=colour(place)) for place, concept in enumerate(concepts)
    ]
    text = (
        "Boxes that readers drew; the mean map of the finding named, coloured from its middle to its highest value; "
        f"dot: its highest point, {what} its boxes."
    )
    return stacked([paragraph(text, LARGE_ROOM.width * 2, size=SMALL, ink=FAINT, most=3), beside(names)], gap=6)
