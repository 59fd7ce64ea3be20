"""Films that somebody shows a reader to teach it a new concept, as the model sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from medgrape.data.cache import fingerprint
from medgrape.data.decoder import Decoder, Request
from medgrape.data.files import sha256
from medgrape.data.film import Film
from medgrape.feedback.safety import BoxOutsideError
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.model.checkpoint import Run
from medgrape.model.evidence import mean_maps
from medgrape.progress import Track, quietly
from medgrape.vocabulary.few_shot import Example
from medgrape.vocabulary.new_concept import NewConceptError, covered

ShownFilm = Path | str | tuple[Path | str, Box]
"""A film that shows the concept, perhaps with a box around it."""


@dataclass(frozen=True)
class Asked:
    """A film by its path, with all boxes that were given for it."""

    path: Path
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class ExampleFilm:
    """The same film, decoded and encoded."""

    path: Path
    content: str
    """Fingerprint of the file."""
    size: FilmSize
    boxes: tuple[Box, ...]
    """The parts that lie on the film."""
    pixels: UInt8[np.ndarray, "side side"]
    """As the model sees it."""
    example: Example

    @property
    def name(self) -> str:
        """What it is called among the films behind a prototype."""
        return self.path.stem


@dataclass(frozen=True)
class ExamplePoint:
    """Where a concept's mean map is highest on an example film, in its own pixels."""

    path: Path
    x: float
    y: float
    in_box: bool | None
    """None where nobody drew one."""


def look_at(run: Run, shown: Sequence[ShownFilm], track: Track = quietly) -> tuple[ExampleFilm, ...]:
    """Every film once. They are decoded in a process of its own, which a broken file may take down."""
    films = sorted_out(shown)
    with Decoder() as decoder:
        return tuple(_look_at(run, film, decoder) for film in track(films, "looking at the examples", len(films)))


def point_at(run: Run, concept: str, shown: Sequence[ShownFilm], track: Track = quietly) -> tuple[ExamplePoint, ...]:
    """Where a run sees the concept on each film."""
    own = run.model.atlas.in_use[run.concepts.index(concept)]
    return tuple(_point_at(film, own) for film in look_at(run, shown, track))


def sorted_out(shown: Sequence[ShownFilm]) -> list[Asked]:
    """One entry for each film, however many boxes on it were given one by one."""
    if isinstance(shown, (str, Path)):  # else every letter would be taken for a film
        raise NewConceptError(f"Examples come as a list, even one alone: [{str(shown)!r}].")
    boxes: dict[Path, list[Box]] = {}
    for one in shown:
        film, *drawn = one if isinstance(one, tuple) else (one,)
        if not isinstance(film, (str, Path)) or not all(isinstance(box, Box) for box in drawn):
            raise NewConceptError(f"An example is a film's path, or (path, Box); {one!r} is neither.")
        boxes.setdefault(Path(film), []).extend(drawn)
    return [Asked(path, tuple(own)) for path, own in boxes.items()]


def _look_at(run: Run, film: Asked, decoder: Decoder) -> ExampleFilm:
    prepared = decoder.read(Request(film.path, run.config.limits, run.config.preprocessing))
    size = prepared.facts.size
    boxes = tuple(_on_film(box, size, film.path) for box in film.boxes)
    patches = _patches(run, prepared)
    inside = covered(boxes, size, (int(patches.shape[-2]), int(patches.shape[-1]))) if boxes else None
    content = fingerprint(sha256(film.path))
    return ExampleFilm(film.path, content, size, boxes, prepared.pixels, Example(patches, inside))


def _point_at(film: ExampleFilm, prototypes: Float[Tensor, "m d"]) -> ExamplePoint:
    found = mean_maps(film.example.patches.unsqueeze(0), [prototypes])[0, 0].numpy()
    x, y = peak(found, PatchGrid(film.size, *found.shape))
    return ExamplePoint(film.path, x, y, any(box.contains(x, y) for box in film.boxes) if film.boxes else None)


def _on_film(box: Box, size: FilmSize, path: Path) -> Box:
    """The part of a box that lies on the film; one that lies beside it is refused."""
    clipped = box.clipped(size)
    if clipped is None:
        raise BoxOutsideError(f"{path}: the box {box.corners} lies outside the film of {size} pixels; draw it on it.")
    return clipped


@torch.no_grad()
def _patches(run: Run, prepared: Film) -> Float[Tensor, "d h w"]:
    greys = torch.from_numpy(prepared.pixels.copy()).float().div(255.0)[None, None]
    return run.model.patches(greys)[0]
