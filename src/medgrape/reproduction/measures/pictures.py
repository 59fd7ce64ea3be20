"""The paper's pictures from our own runs: maps side by side, points, a correction before and after, a warning.

Which films are shown is a rule, not a taste: evenly spaced over the test films that have a box of the finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image

from medgrape.baselines.baseline import Baseline
from medgrape.data.cache import CachedFilms
from medgrape.data.dataset import Dataset, FilmRecord
from medgrape.data.files import whole_file
from medgrape.evaluation.energy import box_energy
from medgrape.evaluation.pointing import boxes_of
from medgrape.evaluation.reading import Loaded
from medgrape.explain.render_layout import badge, beside, bordered, framed, outlined, stacked, stamped
from medgrape.explain.render_maps import HEAT, fitted, painted, relative, resized, upsampled
from medgrape.explain.render_text import FAINT, SMALL, paragraph
from medgrape.feedback.boxes import opened
from medgrape.feedback.claims import commonest
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.palette import colour
from medgrape.reproduction.measures.picture_of_correction import correction_pictures

FILMS, QUALITY = 3, 88
ROOM = FilmSize(260, 260)
_GAP, _DOT, _IN_ROW = 12, 22, 4
BOX = "#56B4E9"


@dataclass(frozen=True)
class Shown:
    """A film, its boxes of the finding, and each method's map of it."""

    film: FilmRecord
    pixels: UInt8[np.ndarray, "side side"]
    boxes: tuple[Box, ...]
    maps: Mapping[str, Float[np.ndarray, "h w"]]
    """By the method's title."""


def draw_pictures(
    runs: Mapping[str, Loaded], data: Path, folder: Path, main: Loaded, name: str = "pictures"
) -> dict[str, Any]:
    """All pictures as ``NAME-*.jpg`` in ``folder``, with their captions; ``main`` is corrected and warns."""
    dataset = Dataset.load(data)
    concept = commonest(dataset)
    cached = opened(main.run.config, dataset, data)
    places = [p for p in cached.readable() if _wanted(dataset, dataset.pictured[p], concept)]
    if concept is None or not places:
        return {"pictures": [], "why": "No test film has a box of the finding that training boxes show most often."}
    chosen = [places[int(at)] for at in np.linspace(0, len(places) - 1, min(FILMS, len(places))).round()]
    shown = [_shown(runs, dataset, cached, place, concept) for place in chosen]
    title = dataset.concepts[concept].title
    told = [
        _saved(
            _maps(shown),
            folder / f"{name}-maps.jpg",
            f"Maps of {title}, each from its middle to its highest value. Blue: the boxes drawn. The figures: "
            "share of the map's energy inside them, and of the film's area.",
        ),
        _saved(
            _dots(shown),
            folder / f"{name}-points.jpg",
            f"Where each method's map of {title} is highest; those at one place stand side by side. Blue: the boxes.",
        ),
    ]
    for what, sheet, caption in correction_pictures(main, dataset, [(one.film, one.boxes) for one in shown], concept):
        told.append(_saved(sheet, folder / f"{name}-{what}.jpg", caption))
    return {"pictures": told, "films": [one.film.id for one in shown]}


def _wanted(dataset: Dataset, film: FilmRecord, concept: str | None) -> bool:
    return film.split == "test" and concept is not None and bool(_on_film(dataset, film, concept))


def _on_film(dataset: Dataset, film: FilmRecord, concept: str) -> tuple[Box, ...]:
    return tuple(box for box in boxes_of(dataset, film, concept) if box.clipped(film.size) is not None)


def _shown(runs: Mapping[str, Loaded], dataset: Dataset, cached: CachedFilms, place: int, concept: str) -> Shown:
    film, pixels = dataset.pictured[place], cached[place]
    maps = {title: _map(loaded, pixels, concept) for title, loaded in runs.items()}
    return Shown(film, pixels, _on_film(dataset, film, concept), maps)


@torch.no_grad()
def _map(loaded: Loaded, pixels: UInt8[np.ndarray, "side side"], concept: str) -> Float[np.ndarray, "h w"]:
    model, row = loaded.run.model, loaded.run.concepts.index(concept)
    greys = torch.from_numpy(pixels.copy()).float().div(255.0)[None, None]
    maps = model.read(greys).maps if isinstance(model, Baseline) else model.read(greys)[1].mean
    return np.asarray(maps[0, row].numpy(), np.float64)


def _maps(shown: Sequence[Shown]) -> Image.Image:
    """A row for each film: the film with its boxes, then each method's map over it."""
    rows = []
    for number, one in enumerate(shown):
        size = fitted(one.film.size, ROOM)
        greys = resized(one.pixels, size)
        panels = [_titled(_boxed(Image.fromarray(greys).convert("RGB"), one, size), "the film", number)]
        for title, found in one.maps.items():
            panel = Image.fromarray(painted(greys, upsampled(relative(found), size), HEAT))
            energy = box_energy(found, one.film, "", one.boxes)
            panels.append(
                _titled(
                    _stamp(_boxed(panel, one, size), f"{100 * energy.share:.0f} % of {100 * energy.area:.0f} %"),
                    title,
                    number,
                )
            )
        rows.append(beside(panels, gap=_GAP, low=True))
    return bordered(stacked(rows, gap=_GAP), _GAP)


def _dots(shown: Sequence[Shown]) -> Image.Image:
    """Each film with one dot for each method."""
    names = list(shown[0].maps)
    panels = []
    for one in shown:
        size = fitted(one.film.size, FilmSize(420, 420))
        panel = _boxed(Image.fromarray(resized(one.pixels, size)).convert("RGB"), one, size)
        taken: list[tuple[float, float]] = []
        for place, name in enumerate(names):
            x, y = peak(one.maps[name], PatchGrid(one.film.size, *one.maps[name].shape))
            across, down = Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5).moved(one.film.size, size).centre
            while any(abs(across - other) < _DOT and abs(down - high) < _DOT for other, high in taken):
                across += _DOT  # beside one that points at the same place
            taken.append((across, down))
            stamped(panel, badge(chr(65 + place), colour(place), _DOT), (across, down))
        panels.append(panel)
    key = [paragraph(f"{chr(65 + n)}  {name}", 320, size=SMALL, ink=colour(n)) for n, name in enumerate(names)]
    rows = [beside(key[start : start + _IN_ROW]) for start in range(0, len(key), _IN_ROW)]
    return bordered(stacked([beside(panels, gap=_GAP), stacked(rows, gap=4)], gap=_GAP), _GAP)


def _boxed(panel: Image.Image, one: Shown, size: FilmSize) -> Image.Image:
    for box in one.boxes:
        outlined(panel, box.moved(one.film.size, size).corners, BOX, 2)
    return panel


def _stamp(panel: Image.Image, text: str) -> Image.Image:
    """The figure in the lower left corner, on a ground of its own."""
    words = bordered(paragraph(text, 130, size=SMALL), 3)
    panel.paste(words, (4, panel.height - words.height - 4))
    return panel


def _titled(panel: Image.Image, title: str, number: int) -> Image.Image:
    """Titles stand above the first row only."""
    if number:
        return panel
    return stacked([framed(paragraph(title, panel.width, size=SMALL, ink=FAINT), panel.width, 22), panel], gap=4)


def _saved(sheet: Image.Image, path: Path, caption: str) -> dict[str, str]:
    with whole_file(path) as draft:
        sheet.save(draft, "JPEG", quality=QUALITY)
    return {"file": path.name, "caption": caption}
