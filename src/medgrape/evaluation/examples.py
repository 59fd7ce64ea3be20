"""Example pictures of a report: films with a concept's map, its highest point and the boxes."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from medgrape.concepts import colour
from medgrape.datasets.dataset import FilmRecord
from medgrape.evaluation.localisation import Localisation, Pair, boxes_of
from medgrape.evaluation.readings import Readings
from medgrape.geometry import Box, FilmSize

T = TypeVar("T")
COUNT = 8
LEVELS = (0.5, 0.9)  # contours, from the map's lowest (0) to its highest value (1)
_LONG_SIDE, _SHORTEST = 360, 60  # pixels
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Example:
    """One pair of film and concept with its picture."""

    pair: Pair
    title: str
    class_name: str
    picture: str  # data URI
    alt: str


def example_pairs(localisation: Localisation, count: int = COUNT) -> tuple[Pair, ...]:
    """Choose pairs evenly spaced over all of them, sorted by film and concept, so that nobody picks the good ones."""
    ordered = sorted(localisation.pairs, key=lambda pair: (pair.film, pair.concept))
    return tuple(evenly_spaced(ordered, count))


def evenly_spaced(items: Sequence[T], count: int) -> list[T]:
    """Return at most ``count`` of the items, evenly spaced from the first to the last."""
    return [items[int(at)] for at in np.linspace(0, len(items) - 1, min(count, len(items))).round()]


def example_films(localisation: Localisation) -> tuple[str, ...]:
    """Return the ids of the films whose pictures the report needs."""
    return tuple(dict.fromkeys(pair.film for pair in example_pairs(localisation)))


def examples(
    localisation: Localisation, readings: Readings, pictures: Mapping[str, UInt8[np.ndarray, "side side"]]
) -> tuple[Example, ...]:
    """Draw the chosen pairs whose film has a picture."""
    places = {film.id: place for place, film in enumerate(readings.films)}
    chosen = (pair for pair in example_pairs(localisation) if pair.film in pictures)
    return tuple(_example(pair, places[pair.film], readings, pictures[pair.film]) for pair in chosen)


def _example(pair: Pair, place: int, readings: Readings, picture: UInt8[np.ndarray, "side side"]) -> Example:
    film, concepts = readings.films[place], readings.dataset.concepts
    row, title = concepts.index(pair.concept), concepts[pair.concept].title
    boxes = boxes_of(readings.dataset, film, pair.concept)
    red, green, blue = bytes.fromhex(colour(row)[1:])
    canvas = draw(picture, film, readings.mean_maps[place, row], boxes, pair.mean.point, (red, green, blue))
    jpeg = cv2.imencode(".jpg", cv2.cvtColor(canvas, cv2.COLOR_RGB2BGR), (cv2.IMWRITE_JPEG_QUALITY, 85))[1]
    x, y = pair.mean.point
    alt = (
        f"Film {film.id}, mean map of {title}: highest at {x:.0f} across and {y:.0f} down of {film.size} pixels, "
        f"{'inside' if pair.mean.hit else 'outside'} the {len(boxes)} box{'es' if len(boxes) > 1 else ''} drawn."
    )
    uri = "data:image/jpeg;base64," + base64.b64encode(jpeg.tobytes()).decode()
    return Example(pair, title, film.class_name, uri, alt)


def draw(
    picture: UInt8[np.ndarray, "side side"],
    film: FilmRecord,
    scores: Float[np.ndarray, "h w"],
    boxes: tuple[Box, ...],
    point: tuple[float, float],
    ink: Colour,
) -> UInt8[np.ndarray, "height width 3"]:
    """Draw the film in its original proportions, with contours in ``ink``, white boxes and a cross at the point."""
    scale = _LONG_SIDE / max(film.size.width, film.size.height)
    size = FilmSize(max(round(film.size.width * scale), _SHORTEST), max(round(film.size.height * scale), _SHORTEST))
    canvas = np.repeat(cv2.resize(picture, (size.width, size.height), interpolation=cv2.INTER_LINEAR)[..., None], 3, 2)
    for box in boxes:
        x1, y1, x2, y2 = (round(edge) for edge in box.moved(film.size, size).corners)
        for thickness, tone in ((4, _BLACK), (2, _WHITE)):
            cv2.rectangle(canvas, (x1, y1), (x2, y2), tone, thickness)
    _draw_contours(canvas, scores, ink)
    x, y = point
    middle = Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5).moved(film.size, size).centre
    for thickness, tone in ((5, _BLACK), (2, ink)):
        cv2.drawMarker(canvas, (round(middle[0]), round(middle[1])), tone, cv2.MARKER_TILTED_CROSS, 18, thickness)
    return np.asarray(canvas)


def _draw_contours(canvas: UInt8[np.ndarray, "height width 3"], scores: Float[np.ndarray, "h w"], ink: Colour) -> None:
    height, width = canvas.shape[:2]
    spread = float(scores.max() - scores.min())
    if spread == 0:  # a constant map has no contours
        return
    relative = ((scores - scores.min()) / spread).astype(np.float32)
    large = cv2.resize(relative, (width, height), interpolation=cv2.INTER_LINEAR)
    for level, thickness in zip(LEVELS, (1, 2), strict=True):
        contours = cv2.findContours((large >= level).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)[0]
        cv2.drawContours(canvas, contours, -1, ink, thickness, cv2.LINE_AA)
