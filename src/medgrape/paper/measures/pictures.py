"""The paper's pictures from our own runs: maps side by side, points, a correction before and after, a warning.

Which films are shown is a rule, not a taste: evenly spaced over the test films that have a box of the finding.
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
from medgrape.concepts import colour
from medgrape.datasets.cache import CachedFilms, cached_films
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.evaluation.evaluate import Loaded
from medgrape.evaluation.localisation import box_energy, boxes_of
from medgrape.explain.layout import FAINT, SMALL, badge, beside, bordered, framed, outlined, paragraph, stacked, stamped
from medgrape.explain.maps import HEAT, fitted, painted, relative, resized, upsampled
from medgrape.files import whole_file
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun
from medgrape.safety.claims import commonest
from medgrape.study import Study

CORRECTION_ROOM = FilmSize(420, 420)
_CORRECTION_GAP = 12
_RIGHT, _WRONG = colour(1), colour(5)


def correction_pictures(
    loaded: Loaded, dataset: Dataset, films: Sequence[tuple[FilmRecord, tuple[Box, ...]]], concept: str
) -> Iterator[tuple[str, Image.Image, str]]:
    """Name, picture and caption of each; the warning is the first that any wrong claim on these films calls up."""
    if not isinstance(loaded, LoadedRun):
        return
    reader = Reader(loaded)
    cached_films = [(film, boxes, reader.open(dataset.film_path(film))) for film, boxes in films]
    film, (box, *_), study = cached_films[0]
    yield (
        "correction",
        _before_and_after(study, film, box, concept),
        _shares(study, study.apply(box, concept, confirmed=True)),
    )
    for film, boxes, study in cached_films:
        for box in boxes:
            for claim in (name for name in dataset.concepts.names if name != concept):
                check = study.check(box, claim)
                if check.mismatch:
                    said = f"Somebody draws this box and says it shows {dataset.concepts[claim].title}."
                    yield "warning", _warning(study, film, box, said, check.reason), f"{said} {check.reason}"
                    return


def _shares(before: Study, after: Study) -> str:
    told = ", ".join(f"{name} {share:.2f} to {after.prediction[name]:.2f}" for name, share in before.prediction.items())
    return f"Left: the map as the model saw it. Right: after a reader drew the box. Classes: {told}."


def _before_and_after(study: Study, film: FilmRecord, box: Box, concept: str) -> Image.Image:
    after = study.apply(box, concept, confirmed=True)
    row = study.original.concepts.index(concept)
    panels = [
        stacked([_panel(study, film, box, one.evidence.mean[row].numpy()), paragraph(title, 400, size=SMALL)], gap=6)
        for title, one in (("before", study), ("after the box", after))
    ]
    return bordered(beside(panels, gap=_CORRECTION_GAP), _CORRECTION_GAP)


def _warning(study: Study, film: FilmRecord, box: Box, said: str, reason: str) -> Image.Image:
    size = fitted(film.size, CORRECTION_ROOM)
    panel = _framed(Image.fromarray(resized(study.film.pixels, size)).convert("RGB"), film, box, size, _WRONG)
    words = stacked(
        [paragraph(said, 420, size=SMALL, most=4), paragraph(reason, 420, size=SMALL, ink=_WRONG, most=8)], gap=8
    )
    return bordered(beside([panel, words], gap=_CORRECTION_GAP), _CORRECTION_GAP)


def _panel(study: Study, film: FilmRecord, box: Box, scores: np.ndarray) -> Image.Image:
    size = fitted(film.size, CORRECTION_ROOM)
    panel = Image.fromarray(painted(resized(study.film.pixels, size), upsampled(relative(scores), size), HEAT))
    x, y = peak(scores, PatchGrid(film.size, *scores.shape))
    spot = Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5).moved(film.size, size).centre
    stamped(panel, badge("", colour(0), 14), spot)
    return _framed(panel, film, box, size, _RIGHT)


def _framed(panel: Image.Image, film: FilmRecord, box: Box, size: FilmSize, ink: str) -> Image.Image:
    outlined(panel, box.moved(film.size, size).corners, ink)
    return panel


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
    cached = cached_films(main.run.config, dataset, data)
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
