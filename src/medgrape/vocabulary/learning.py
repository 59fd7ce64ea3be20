"""A trained run learns a new concept, and its head is extended to it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from einops import rearrange, reduce
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from medgrape.concepts import Concept
from medgrape.datasets.cache import fingerprint
from medgrape.files import sha256
from medgrape.films.decoder import Decoder, Request
from medgrape.geometry import Box, BoxOutsideError, FilmSize, PatchGrid, peak
from medgrape.model.evidence import mean_maps, similarity
from medgrape.model.grape import grow_head
from medgrape.model.graph import ConceptGraph
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import ReferenceScores, Run
from medgrape.runs.exemplars import NO_FILM, NO_SIMILARITY, ExemplarFilms, thumbnails
from medgrape.vocabulary.new_concept import Example, NewConceptError, all_but, covered, teach, widened, with_concept

ShownFilm = Path | str | tuple[Path | str, Box]  # A film that shows the concept, optionally with a box around it


@dataclass(frozen=True)
class ExampleFilm:
    """An example film, decoded and encoded."""

    path: Path
    content: str  # Fingerprint of the file
    size: FilmSize
    boxes: tuple[Box, ...]  # The parts of the boxes that lie on the film
    pixels: UInt8[np.ndarray, "side side"]  # The input of the model
    example: Example

    @property
    def name(self) -> str:
        """Its name among the exemplar films of a run."""
        return self.path.stem


@dataclass(frozen=True)
class ExamplePoint:
    """The peak of a concept's mean map on an example film, in film pixels."""

    path: Path
    x: float
    y: float
    in_box: bool | None  # None without a box


def encode_films(run: Run, shown: Sequence[ShownFilm], track: Track = quietly) -> tuple[ExampleFilm, ...]:
    """Decode and encode every film once; another process decodes them, so that a broken file cannot crash this one."""
    films = list(group_boxes(shown).items())
    with Decoder() as decoder:
        tracked = track(films, "looking at the examples", len(films))
        return tuple(_encoded(run, path, boxes, decoder) for path, boxes in tracked)


def point_at(run: Run, concept: str, shown: Sequence[ShownFilm], track: Track = quietly) -> tuple[ExamplePoint, ...]:
    """Return the peak of the concept's mean map on each film."""
    prototypes = run.model.atlas.in_use[run.concepts.index(concept)]
    points = []
    for film in encode_films(run, shown, track):
        mean = mean_maps(film.example.patches.unsqueeze(0), [prototypes])[0, 0].numpy()
        x, y = peak(mean, PatchGrid(film.size, *mean.shape))
        in_box = any(box.contains(x, y) for box in film.boxes) if film.boxes else None
        points.append(ExamplePoint(film.path, x, y, in_box))
    return tuple(points)


def group_boxes(shown: Sequence[ShownFilm]) -> dict[Path, tuple[Box, ...]]:
    """Return the boxes of each film; a film may be given several times, each time with one box."""
    if isinstance(shown, str | Path):  # otherwise every letter would be a film
        raise NewConceptError(f"Examples are a list, even if there is only one: [{str(shown)!r}].")
    films: dict[Path, tuple[Box, ...]] = {}
    for entry in shown:
        film, *boxes = entry if isinstance(entry, tuple) else (entry,)
        if not isinstance(film, str | Path) or not all(isinstance(box, Box) for box in boxes):
            raise NewConceptError(f"An example is a film's path, or (path, Box); {entry!r} is neither.")
        films[Path(film)] = (*films.get(Path(film), ()), *boxes)
    return films


def _encoded(run: Run, path: Path, boxes: Sequence[Box], decoder: Decoder) -> ExampleFilm:
    film = decoder.read(Request(path, run.config.limits, run.config.preprocessing))
    size, clipped = film.facts.size, []
    for box in boxes:
        part = box.clipped(size)
        if part is None:
            raise BoxOutsideError(
                f"{path}: the box {box.corners} lies outside the film of {size} pixels; draw it on the film."
            )
        clipped.append(part)
    with torch.no_grad():
        patches = run.model.patches(torch.from_numpy(film.pixels.copy()).float().div(255.0)[None, None])[0]
    inside = covered(clipped, size, (int(patches.shape[-2]), int(patches.shape[-1]))) if clipped else None
    return ExampleFilm(path, fingerprint(sha256(path)), size, tuple(clipped), film.pixels, Example(patches, inside))


@dataclass(frozen=True)
class Learnt:
    """A changed run, and a sentence that describes the change."""

    run: Run
    what: str


def learn_concept(
    run: Run, concept: Concept, shown: Sequence[ShownFilm] = (), *, seed: int = 0, track: Track = quietly
) -> Learnt:
    """Add a concept. Only its own prototypes are new: all other maps and the classes stay the same to the last bit."""
    concepts = with_concept(run.concepts, concept)
    films = encode_films(run, shown, track)
    examples = [film.example for film in films]
    weights = teach(run, concept, examples, seed=seed)
    reference_scores = reference_scores_of_new(weights.prototypes, examples, all_but(run.grape.atlas))
    untrained = [*run.metrics["untrained_concepts"], *([] if films else [concept.name])]
    changed = replace(
        run,
        concepts=concepts,
        model=widened(run.grape, weights, reference_scores.absent[0]),
        reference_scores=run.reference_scores.joined(reference_scores),
        exemplars=_with_films(run, weights.prototypes, films),
        metrics=run.metrics | {"untrained_concepts": untrained},
        learnt_from=tuple(dict.fromkeys((*run.learnt_from, *(film.content for film in films)))),
    )
    sources = [] if weights.text is None else ["its description"]
    if films:
        count = sum(len(film.boxes) for film in films)
        boxes = f"{count or 'no'} {'box' if count <= 1 else 'boxes'}"
        sources.append(f"{len(films)} {'film' if len(films) == 1 else 'films'} ({boxes})")
    return Learnt(changed, f"Learnt {concept.name} from {' and '.join(sources)}.")


def extend_head(run: Run, probability: Float[Tensor, "k k"] | None = None) -> Learnt:
    """Extend the head to every concept; the added ones have no effect on the classes until the head is trained.

    ``probability`` is P(k given j). Without it, a new concept has edges to and from all others.
    """
    known, count = run.grape.head_concepts, len(run.concepts)
    if known == count:
        raise NewConceptError("The head uses every concept already; add one first with: medgrape concept add.")
    if probability is not None and probability.shape != (count, count):
        raise NewConceptError(f"The model has {count} concepts and needs a {count} x {count} table of probabilities.")
    model = deepcopy(run.grape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.config.seed)
        if probability is None:
            probability = _assumed_probability(model.graph, count, run.config.model.tau)
        grow_head(model, run.config.model, probability, len(run.classes))
    model.eval().requires_grad_(False)
    return Learnt(replace(run, model=model), f"Let the head listen to {', '.join(run.concepts.names[known:])}.")


def reference_scores_of_new(
    prototypes: Float[Tensor, "m d"], examples: Sequence[Example], others: Float[Tensor, "n d"]
) -> ReferenceScores:
    """Return the reference scores of a new concept: `absent` outside the boxes of its examples, `present` inside.

    Without boxes, the difference of the two peaks is not known, so both are the same; the absent score of a prototype
    is then its similarity to the nearest prototype of the other concepts.
    """
    films = [(similarity(example.patches, [prototypes])[0], example.inside) for example in examples]
    absent, absent_peaks, present_peaks = [], [], []
    for maps, inside in films:
        if inside is not None and bool((inside == 0).any()):
            mean = reduce(maps, "m h w -> h w", "mean")
            absent.append(maps[:, inside == 0].amax(dim=1))
            absent_peaks.append(mean[inside == 0].max())
            present_peaks.append(mean[inside > 0].max())
    if absent:
        return ReferenceScores(_median(absent), _median(absent_peaks), _median(present_peaks))
    nearest = (prototypes @ others.T).amax(dim=1)
    peak = _median([reduce(maps, "m h w -> h w", "mean").max() for maps, _ in films] or [nearest.mean()])
    return ReferenceScores(nearest[None], peak, peak.clone())


def _median(values: Sequence[Tensor]) -> Float[Tensor, "1 ..."]:
    return torch.stack(list(values)).quantile(0.5, dim=0)[None]


def _with_films(run: Run, prototypes: Float[Tensor, "m d"], films: Sequence[ExampleFilm]) -> ExemplarFilms:
    """Return the run's exemplars and the nearest example film of each new prototype, unless films are withheld."""
    before, rules = run.exemplars, run.config.exemplars
    showable = [film for film in films if rules.show and film.name not in rules.withheld]
    film, patch, cosine = _nearest(prototypes, showable)
    chosen = np.setdiff1d(film, NO_FILM).tolist()
    place = np.where(film == NO_FILM, NO_FILM, len(before.films) + np.searchsorted(chosen, film))
    pictures = thumbnails([showable[number].pixels for number in chosen], before.thumbnails.shape[-1])
    return ExemplarFilms(
        before.grid,
        (*before.films, *(showable[number].name for number in chosen)),
        np.concatenate([before.thumbnails, pictures]),
        np.concatenate([before.film, place[None]]),
        np.concatenate([before.patch, patch[None]]),
        np.concatenate([before.similarity, cosine[None]]),
    )


def _nearest(
    prototypes: Float[Tensor, "m d"], films: Sequence[ExampleFilm]
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return the film, the patch (row by row) and the cosine of the nearest patch of each prototype."""
    if not films:
        count = len(prototypes)
        return np.full(count, NO_FILM), np.zeros(count, np.int64), np.full(count, NO_SIMILARITY, np.float32)
    maps = torch.stack([similarity(film.example.patches, [prototypes])[0] for film in films])
    patches = maps.shape[-2] * maps.shape[-1]
    best = rearrange(maps, "n m h w -> m (n h w)").max(dim=1)
    return *divmod(best.indices.numpy(), patches), best.values.numpy()


def _assumed_probability(graph: ConceptGraph, concepts: int, tau: float) -> Float[Tensor, "k k"]:
    """Return P(k given j): from the graph for known concepts, and half way from ``tau`` to one for new ones."""
    known = graph.edges.shape[0]
    probability = torch.full((concepts, concepts), (1 + tau) / 2)
    counted = graph.weights / graph.weights.diagonal().unsqueeze(1)  # undoes the normalisation of rows
    above_tau = torch.nextafter(torch.tensor(tau), torch.tensor(1.0))
    probability[:known, :known] = torch.where(graph.edges, counted.clamp_min(above_tau), torch.zeros_like(counted))
    return probability
