"""A run learns a new concept, and may let its head listen to it: what changes, and all that stays."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from einops import rearrange, reduce
from jaxtyping import Float, UInt8
from torch import Tensor

from medgrape.concepts import Concept
from medgrape.datasets.cache import fingerprint
from medgrape.files import sha256
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film
from medgrape.geometry import Box, BoxOutsideError, FilmSize, PatchGrid, peak
from medgrape.model.evidence import mean_maps, similarity
from medgrape.model.graph import ConceptGraph
from medgrape.model.grown_head import grow_head
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import ExemplarFilms, Run, UsualScores
from medgrape.vocabulary.few_shot import Example
from medgrape.vocabulary.new_concept import NewConceptError, all_but, covered, teach, widened, with_concept

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


NO_FILM = -1
"""In ``ExemplarFilms.film``: nothing to show."""
NO_SIMILARITY = -2.0
"""Beside it: less than any cosine."""


@dataclass(frozen=True)
class Learnt:
    """What became of a run, and in one sentence how."""

    run: Run
    what: str


def learn_concept(
    run: Run, concept: Concept, shown: Sequence[ShownFilm] = (), *, seed: int = 0, track: Track = quietly
) -> Learnt:
    """One more concept. Only its own prototypes are new: every other map and every class stays to the last bit."""
    concepts = with_concept(run.concepts, concept)
    films = look_at(run, shown, track)
    examples = [film.example for film in films]
    taught = teach(run, concept, examples, seed=seed)
    usual = usual_of_new(taught.prototypes, examples, all_but(run.grape.atlas))
    changed = replace(
        run,
        concepts=concepts,
        model=widened(run.grape, taught, usual.absent[0]),
        usual=_joined(run.usual, usual),
        exemplars=_with_films(run, taught.prototypes, films),
        metrics=run.metrics if films else _untaught(run.metrics, concept.name),
        learnt_from=tuple(dict.fromkeys((*run.learnt_from, *(film.content for film in films)))),
    )
    return Learnt(changed, _how(concept.name, films, read_text=taught.text is not None))


def listen_to_all(run: Run, probability: Float[Tensor, "k k"] | None = None) -> Learnt:
    """The head grown to every concept; those it did not know have no influence on the classes until it is trained.

    Without ``probability``, which tells how concepts go together, a new concept listens to all others and is heard by
    all: nobody has counted.
    """
    known, every = run.grape.judged, len(run.concepts)
    if known == every:
        raise NewConceptError("The head judges by every concept already; add one first with: medgrape concept add.")
    if probability is not None and probability.shape != (every, every):
        raise NewConceptError(
            f"The model has {every} concepts, so it takes a {every} x {every} table of probabilities."
        )
    model = deepcopy(run.grape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.config.seed)
        told = _nobody_counted(model.graph, every, run.config.model.tau) if probability is None else probability
        grow_head(model, run.config.model, told, len(run.classes))
    model.eval().requires_grad_(False)
    return Learnt(replace(run, model=model), f"Let the head listen to {', '.join(run.concepts.names[known:])}.")


def usual_of_new(
    prototypes: Float[Tensor, "m d"], examples: Sequence[Example], others: Float[Tensor, "n d"]
) -> UsualScores:
    """What a new concept scores without it, outside the boxes of its examples, and with it, inside.

    Where no box tells the one from the other, both peaks are the same, so nobody says more than can be told; without
    it, a prototype is then taken to score what the nearest thing that the model knows does.
    """
    found = [(similarity(example.patches, [prototypes])[0], example.inside) for example in examples]
    parted = [_parted(maps, inside) for maps, inside in found if inside is not None and bool((inside == 0).any())]
    if parted:
        absent, low, high = (torch.stack(column) for column in zip(*parted, strict=True))
        return UsualScores(_median(absent)[None], _median(low)[None], _median(high)[None])
    nearest = (prototypes @ others.T).amax(dim=1)
    peaks = [reduce(maps, "m h w -> h w", "mean").max() for maps, _ in found] or [nearest.mean()]
    peak = _median(torch.stack(peaks))[None]
    return UsualScores(nearest[None], peak, peak.clone())


def _parted(maps: Float[Tensor, "m h w"], inside: Float[Tensor, "h w"]) -> tuple[Tensor, Tensor, Tensor]:
    """Outside the box: each prototype's best patch, and the peak of their mean; inside: that peak."""
    mean, within = reduce(maps, "m h w -> h w", "mean"), inside > 0
    return maps[:, ~within].amax(dim=1), mean[~within].max(), mean[within].max()


def _median(figures: Float[Tensor, "n ..."]) -> Float[Tensor, "..."]:
    return figures.quantile(0.5, dim=0)


def _joined(usual: UsualScores, new: UsualScores) -> UsualScores:
    return UsualScores(
        torch.cat([usual.absent, new.absent]),
        torch.cat([usual.absent_peak, new.absent_peak]),
        torch.cat([usual.present_peak, new.present_peak]),
    )


def _with_films(run: Run, prototypes: Float[Tensor, "m d"], films: Sequence[ExampleFilm]) -> ExemplarFilms:
    """The run's pictures, and of each new prototype's nearest example film one more, unless films are withheld."""
    before, rules = run.exemplars, run.config.exemplars
    showable = [film for film in films if rules.show and film.name not in rules.withheld]
    film, patch, close = _nearest(prototypes, showable)
    chosen = sorted(set(film.tolist()) - {NO_FILM})
    place = {number: len(before.films) + position for position, number in enumerate(chosen)} | {NO_FILM: NO_FILM}
    side = before.thumbnails.shape[-1]
    pictures = [cv2.resize(showable[n].pixels, (side, side), interpolation=cv2.INTER_AREA) for n in chosen]
    return ExemplarFilms(
        before.grid,
        (*before.films, *(showable[number].name for number in chosen)),
        np.concatenate([before.thumbnails, np.array(pictures, dtype=np.uint8).reshape(-1, side, side)]),
        np.concatenate([before.film, np.array([[place[number] for number in film.tolist()]])]),
        np.concatenate([before.patch, patch.numpy()[None]]),
        np.concatenate([before.similarity, close.numpy()[None]]),
    )


def _nearest(prototypes: Float[Tensor, "m d"], films: Sequence[ExampleFilm]) -> tuple[Tensor, Tensor, Tensor]:
    """For each prototype: which film, which of its patches counted row by row, and how similar."""
    if not films:
        nothing = torch.full((len(prototypes),), NO_FILM)
        return nothing, torch.zeros_like(nothing), torch.full((len(prototypes),), NO_SIMILARITY)
    maps = torch.stack([similarity(film.example.patches, [prototypes])[0] for film in films])
    patches = maps.shape[-2] * maps.shape[-1]
    best = rearrange(maps, "n m h w -> m (n h w)").max(dim=1)
    return best.indices // patches, best.indices % patches, best.values


def _untaught(metrics: dict[str, Any], name: str) -> dict[str, Any]:
    return metrics | {"untrained_concepts": [*metrics["untrained_concepts"], name]}


def _nobody_counted(graph: ConceptGraph, concepts: int, tau: float) -> Float[Tensor, "k k"]:
    """P(k given j) as the graph has it on its edges, and for new concepts half way from ``tau`` to certainty."""
    known = graph.edges.shape[0]
    probability = torch.full((concepts, concepts), (1 + tau) / 2)
    counted = graph.weights / graph.weights.diagonal().unsqueeze(1)  # each row was divided by one number
    edge = torch.nextafter(torch.tensor(tau), torch.tensor(1.0))
    probability[:known, :known] = torch.where(graph.edges, counted.clamp_min(edge), torch.zeros_like(counted))
    return probability


def _how(name: str, films: Sequence[ExampleFilm], *, read_text: bool) -> str:
    boxes = sum(len(film.boxes) for film in films)
    told = ["its description"] if read_text else []
    if films:
        drawn = "no box" if boxes == 0 else f"{boxes} {'box' if boxes == 1 else 'boxes'}"
        told.append(f"{len(films)} {'film' if len(films) == 1 else 'films'} ({drawn})")
    return f"Learnt {name} from {' and '.join(told)}."
