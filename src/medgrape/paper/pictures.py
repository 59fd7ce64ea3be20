"""Pictures for the tables: maps of all methods on some films, a correction, a warning, hits and misses of a map.

Films are chosen by a rule, evenly spaced or at random, never by eye.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
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
from medgrape.evaluation.examples import evenly_spaced
from medgrape.evaluation.localisation import Pair, box_energy, boxes_of
from medgrape.explain.layout import FAINT, SMALL, badge, beside, bordered, framed, outlined, paragraph, stacked, stamped
from medgrape.explain.maps import HEAT, fitted, painted, relative, resized, upsampled
from medgrape.files import whole_file
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun
from medgrape.safety.claims import most_frequent_concept

FILMS, QUALITY = 3, 88
SMALL_ROOM, LARGE_ROOM = FilmSize(260, 260), FilmSize(420, 420)
_GAP, _LETTER, _DOT, _IN_ROW = 12, 22, 14, 4
_BOX, _RIGHT, _WRONG = "#56B4E9", colour(1), colour(5)


@dataclass(frozen=True)
class ComparedFilm:
    """A film, its boxes of the finding, and the map of each method."""

    film: FilmRecord
    pixels: UInt8[np.ndarray, "side side"]
    boxes: tuple[Box, ...]
    maps: Mapping[str, Float[np.ndarray, "h w"]]  # by the method's title


def draw_methods(
    runs: Mapping[str, Loaded], data: Path, folder: Path, main: Loaded, name: str = "pictures"
) -> dict[str, Any]:
    """Draw all pictures as ``NAME-*.jpg`` in ``folder``; correction and warning are drawn with the model ``main``."""
    dataset = Dataset.load(data)
    concept = most_frequent_concept(dataset)
    cached = cached_films(main.run.config, dataset, data)
    boxes: dict[int, tuple[Box, ...]] = {}
    for place in cached.readable():
        film = dataset.pictured[place]
        if concept is not None and film.split == "test":
            drawn = tuple(box for box in boxes_of(dataset, film, concept) if box.clipped(film.size) is not None)
            boxes |= {place: drawn} if drawn else {}
    if concept is None or not boxes:
        return {"pictures": [], "why": "No test film has a box of the finding that training boxes show most often."}
    films = []
    for place in evenly_spaced(list(boxes), FILMS):
        maps = {title: _map(loaded, cached[place], concept) for title, loaded in runs.items()}
        films.append(ComparedFilm(dataset.pictured[place], cached[place], boxes[place], maps))
    title = dataset.concepts[concept].title
    maps_caption = (
        f"Maps of {title}, each from its middle to its highest value. Blue: the boxes drawn. The figures: "
        "share of the map's energy inside them, and of the film's area."
    )
    points_caption = (
        f"Where each method's map of {title} is highest; those at one place stand side by side. Blue: the boxes."
    )
    sheets = [("maps", _maps(films), maps_caption), ("points", _points(films), points_caption)]
    sheets += _corrections(main, dataset, films, concept)
    pictures = []
    for kind, sheet, caption in sheets:
        path = folder / f"{name}-{kind}.jpg"
        with whole_file(path) as draft:
            sheet.save(draft, "JPEG", quality=QUALITY)
        pictures.append({"file": path.name, "caption": caption})
    return {"pictures": pictures, "films": [compared.film.id for compared in films]}


@torch.no_grad()
def _map(loaded: Loaded, pixels: UInt8[np.ndarray, "side side"], concept: str) -> Float[np.ndarray, "h w"]:
    model, row = loaded.run.model, loaded.run.concepts.index(concept)
    greys = torch.from_numpy(pixels.copy()).float().div(255.0)[None, None]
    maps = (
        model.predict_with_all_maps(greys).maps
        if isinstance(model, Baseline)
        else model.predict_with_all_maps(greys)[1].mean
    )
    return np.asarray(maps[0, row].numpy(), np.float64)


def _maps(films: Sequence[ComparedFilm]) -> Image.Image:
    """A row for each film: the film with its boxes, then the map of each method over it."""
    rows = []
    for number, compared in enumerate(films):
        greys = resized(compared.pixels, fitted(compared.film.size, SMALL_ROOM))
        panels = {"the film": _with_boxes(_grey(greys), compared.film, compared.boxes, _BOX, 2)}
        for title, scores in compared.maps.items():
            panel = _with_boxes(_heat(greys, scores), compared.film, compared.boxes, _BOX, 2)
            energy = box_energy(scores, compared.film, "", compared.boxes)
            text = f"{100 * energy.share:.0f} % of {100 * energy.area:.0f} %"
            label = bordered(paragraph(text, 130, size=SMALL), 3)
            panel.paste(label, (4, panel.height - label.height - 4))
            panels[title] = panel
        if not number:  # only the first row has titles
            for title, panel in panels.items():
                heading = framed(paragraph(title, panel.width, size=SMALL, ink=FAINT), panel.width, 22)
                panels[title] = stacked([heading, panel], gap=4)
        rows.append(beside(list(panels.values()), gap=_GAP, low=True))
    return bordered(stacked(rows, gap=_GAP), _GAP)


def _points(films: Sequence[ComparedFilm]) -> Image.Image:
    """Each film with one dot for each method."""
    names = list(films[0].maps)
    panels = []
    for compared in films:
        film, size = compared.film, fitted(compared.film.size, LARGE_ROOM)
        panel = _with_boxes(_grey(resized(compared.pixels, size)), film, compared.boxes, _BOX, 2)
        taken: list[tuple[float, float]] = []
        for place, name in enumerate(names):
            x, y = _on_panel(_peak(compared.maps[name], film), film, size)
            while any(abs(x - other_x) < _LETTER and abs(y - other_y) < _LETTER for other_x, other_y in taken):
                x += _LETTER  # beside a dot at the same place
            taken.append((x, y))
            stamped(panel, badge(chr(65 + place), colour(place), _LETTER), (x, y))
        panels.append(panel)
    legend = [paragraph(f"{chr(65 + n)}  {name}", 320, size=SMALL, ink=colour(n)) for n, name in enumerate(names)]
    rows = [beside(legend[start : start + _IN_ROW]) for start in range(0, len(legend), _IN_ROW)]
    return bordered(stacked([beside(panels, gap=_GAP), stacked(rows, gap=4)], gap=_GAP), _GAP)


def _corrections(
    loaded: Loaded, dataset: Dataset, films: Sequence[ComparedFilm], concept: str
) -> Iterator[tuple[str, Image.Image, str]]:
    """Yield name, picture and caption of a correction, and of the first warning at a wrong claim on these films."""
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
    pairs = [
        (compared.film, study, box) for compared, study in zip(films, studies, strict=True) for box in compared.boxes
    ]
    for (film, study, box), claim in product(pairs, others):
        check = study.check(box, claim)
        if check.mismatch:
            claimed = f"Somebody draws this box and says it shows {dataset.concepts[claim].title}."
            reason = paragraph(check.reason, 420, size=SMALL, ink=_WRONG, most=8)
            text = stacked([paragraph(claimed, 420, size=SMALL, most=4), reason], gap=8)
            pixels = resized(study.film.pixels, fitted(film.size, LARGE_ROOM))
            panels = [_with_boxes(_grey(pixels), film, [box], _WRONG), text]
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


COUNT = 4  # hits, and misses, that are drawn
_MARGIN = 16
_GROUND = 60  # grey below a map without its film


def draw_hits(
    loaded: LoadedRun, data: Path, pairs: Sequence[Pair], prefix: Path, *, seed: int
) -> dict[str, list[dict[str, str]]]:
    """Draw hits and misses of the mean map as ``PREFIX-good.png`` and ``PREFIX-bad.png``; return films and concepts.

    Without hits, or without misses, that picture is left out. ``PREFIX-good-maps.png`` and ``PREFIX-bad-maps.png`` have
    maps and boxes alone, which may be published where the films may not.
    """
    reader, dataset, drawn = Reader(loaded), Dataset.load(data), dict[str, list[dict[str, str]]]()
    films = {film.id: film for film in dataset.films}
    for kind, hit in (("good", True), ("bad", False)):
        chosen = random_pairs([pair for pair in pairs if pair.mean.hit is hit], seed)
        drawn[kind] = [{"film": pair.film, "concept": pair.concept} for pair in chosen]
        if chosen:
            panels = [_hit_panels(reader, dataset, films[pair.film], pair) for pair in chosen]
            for suffix, row in zip(("", "-maps"), zip(*panels, strict=True), strict=True):
                sheet = stacked([beside(row, gap=_MARGIN), _legend(dataset.concepts, kind)], gap=_MARGIN)
                with whole_file(prefix.with_name(f"{prefix.name}-{kind}{suffix}.png")) as draft:
                    bordered(sheet, _MARGIN).save(draft, "PNG")
    return drawn


def random_pairs(pairs: Sequence[Pair], seed: int, count: int = COUNT) -> list[Pair]:
    """Choose some pairs at random; their order does not matter."""
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


def _legend(concepts: ConceptSet, kind: str) -> Image.Image:
    names = [
        paragraph(f"■ {concept.title}", 240, size=SMALL, ink=colour(place)) for place, concept in enumerate(concepts)
    ]
    text = (
        "Boxes that readers drew; the mean map of the finding named, coloured from its middle to its highest value; "
        f"dot: its highest point, {'inside' if kind == 'good' else 'outside'} its boxes."
    )
    return stacked([paragraph(text, LARGE_ROOM.width * 2, size=SMALL, ink=FAINT, most=3), beside(names)], gap=6)
