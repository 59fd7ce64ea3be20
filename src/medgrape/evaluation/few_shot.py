"""Leave one concept out: forget its prototypes, learn it again from few films, see where it points (paper Module C).

Backbone and projector stay as they are, and they have seen the concept: as in the paper, this tells how well prototypes
are learnt from few films, not what a model makes of a finding that it never met. The text projection, which in the
paper has seen it too, is made to forget it (``untaught_anchor``).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.cache import FilmCache, fingerprint
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.datasets.statistics import guess
from medgrape.evaluation.few_shot_films import Candidate, Scene, encoded
from medgrape.evaluation.localisation import boxes_of
from medgrape.evaluation.readings import EvaluationError
from medgrape.files import whole_file
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun
from medgrape.vocabulary.new_concept import all_but, starting_prototypes, tune


@dataclass(frozen=True)
class Spread:
    """A figure over the seeds."""

    mean: float
    sd: float | None
    """None where there is one seed only."""
    se: float | None
    """Standard error of the mean."""

    @classmethod
    def of(cls, figures: Sequence[float]) -> "Spread":
        """Over one figure for each seed."""
        several = len(figures) > 1
        sd = float(np.std(figures, ddof=1)) if several else None
        return cls(float(np.mean(figures)), sd, None if sd is None else sd / len(figures) ** 0.5)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"mean": self.mean, "sd": self.sd, "se": self.se}


@dataclass(frozen=True)
class Shots:
    """What so many films taught."""

    films: int
    by_seed: tuple[float, ...]
    """Share of film-concept pairs whose point lies in a box, for each draw of films."""
    seconds: float
    """Median time of one learning, once the films are encoded."""

    @property
    def pointing(self) -> Spread:
        """The pointing game over the seeds."""
        return Spread.of(self.by_seed)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "films": self.films,
            **self.pointing.to_json(),
            "by_seed": list(self.by_seed),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class ConceptTrial:
    """One concept that was forgotten and learnt again."""

    name: str
    title: str
    pairs: int
    """Films with a box of it that were pointed at."""
    to_learn_from: int
    """Training films with a box of it, from which the examples were drawn."""
    full: float
    """The pointing game of the run's own prototypes: full supervision."""
    fixed: float
    """Of one fixed point, learnt from the training boxes."""
    chance: float
    """Of a random point."""
    shots: tuple[Shots, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return vars(self) | {"shots": [one.to_json() for one in self.shots]}


@dataclass(frozen=True)
class VocabularyTrial:
    """All concepts, each left out in turn."""

    run: str
    data_set: str
    split: str
    boxes: bool
    """Whether the examples came with their boxes."""
    concepts: tuple[ConceptTrial, ...]
    warnings: tuple[str, ...] = ()

    @cached_property
    def average(self) -> ConceptTrial:
        """The mean over concepts, each counting alike."""
        shots = [
            Shots(
                same[0].films,
                tuple(float(np.mean(seed)) for seed in zip(*(one.by_seed for one in same), strict=True)),
                float(np.median([one.seconds for one in same])),
            )
            for same in zip(*(concept.shots for concept in self.concepts), strict=True)
        ]
        full, fixed, chance = (_mean(self.concepts, name) for name in ("full", "fixed", "chance"))
        pairs, films = (sum(getattr(one, name) for one in self.concepts) for name in ("pairs", "to_learn_from"))
        return ConceptTrial("mean", "Mean over concepts", pairs, films, full, fixed, chance, tuple(shots))

    def share_of_full(self, shots: Shots) -> Spread | None:
        """Of the mean over concepts, how much of full supervision's; None where that points nowhere."""
        full = self.average.full
        return Spread.of([figure / full for figure in shots.by_seed]) if full > 0 else None

    @property
    def monotone(self) -> bool:
        """Whether more films never teach less, within one standard error of the difference seed by seed."""
        shots = self.average.shots
        return all(_no_worse(fewer, more) for fewer, more in pairwise(shots))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        shares = [(shots.films, self.share_of_full(shots)) for shots in self.average.shots]
        return {
            "run": self.run,
            "data_set": self.data_set,
            "split": self.split,
            "boxes": self.boxes,
            "concepts": [one.to_json() for one in self.concepts],
            "average": self.average.to_json(),
            "share_of_full": [{"films": n, **share.to_json()} for n, share in shares if share is not None],
            "monotone": self.monotone,
            "warnings": list(self.warnings),
        }


def _no_worse(fewer: Shots, more: Shots) -> bool:
    gain = Spread.of([after - before for before, after in zip(fewer.by_seed, more.by_seed, strict=True)])
    return gain.mean + (gain.se or 0.0) >= 0


def _mean(concepts: Sequence[ConceptTrial], figure: str) -> float:
    return float(np.mean([getattr(one, figure) for one in concepts]))


@dataclass(frozen=True)
class TrialPlan:
    """What is tried."""

    films: tuple[int, ...] = (0, 1, 5, 20)
    """How many films teach the concept; 0: its description alone."""
    seeds: int = 5
    boxes: bool = True
    """False hides the boxes of the examples, not those that are pointed at."""
    split: str = "test"
    """Whose films are pointed at; the examples are always training films."""

    def __post_init__(self) -> None:
        if not self.films or min(self.films) < 0 or self.seeds < 1:
            raise EvaluationError("A trial needs at least one seed, and numbers of films from 0 on, such as 0,1,5,20.")
        if self.split not in ("val", "test"):
            raise EvaluationError(
                f"A concept is tried on val or test films, not on {self.split!r}: it learns on train."
            )
        object.__setattr__(self, "films", tuple(sorted(set(self.films))))


def leave_one_out(
    loaded: LoadedRun, data: Path, plan: TrialPlan | None = None, *, track: Track = quietly
) -> VocabularyTrial:
    """Every concept that has boxes on training films and on those of the split, forgotten and learnt again."""
    plan, run = _possible(plan or TrialPlan(), loaded), loaded.run
    whole = Dataset.load(data)
    cached = FilmCache(data / "cache", run.config).films([whole.film_path(f) for f in whole.pictured], track=track)
    places = {whole.pictured[place].id: place for place in cached.readable()}
    dataset = replace(whole, films=tuple(film for film in whole.films if film.id in places))
    candidates = _candidates(loaded, dataset, plan)
    patches = encoded(run.grape, cached, {film: places[film] for film in _needed(candidates, plan)}, track)
    scene = Scene(run.grape, dataset, patches)
    concepts = _tried(scene, candidates, plan, track)
    learnt = set(loaded.run.learnt_from)
    known = {film for film, place in places.items() if fingerprint(cached.contents[place]) in learnt}
    return VocabularyTrial(
        loaded.folder.name, dataset.name, plan.split, plan.boxes, concepts, tuple(_warnings(candidates, plan, known))
    )


def write_trial(tried: VocabularyTrial, path: Path) -> None:
    """All figures as one JSON file, whole or not at all."""
    with whole_file(path) as draft:
        draft.write_text(json.dumps(tried.to_json(), indent=2, allow_nan=False) + "\n", "utf-8")


def _possible(plan: TrialPlan, loaded: LoadedRun) -> TrialPlan:
    """Without text, nothing can be learnt from no film."""
    if loaded.run.grape.anchors is not None:
        return plan
    if plan.films == (0,):
        raise EvaluationError("This model reads no text, so a concept needs films; try 1 or more of them.")
    return replace(plan, films=tuple(number for number in plan.films if number > 0))


def _candidates(loaded: LoadedRun, dataset: Dataset, plan: TrialPlan) -> list[Candidate]:
    found = []
    for name in (name for name in dataset.concepts.names if name in loaded.run.concepts):
        taught, tested = (
            tuple(film for film in dataset.in_split(split) if boxes_of(dataset, film, name))
            for split in ("train", plan.split)
        )
        if taught and tested:
            found.append(Candidate(name, loaded.run.concepts.index(name), taught, tested))
    if not found:
        raise EvaluationError(
            f"No concept of the model has boxes on both train and {plan.split} films of {dataset.name!r}, "
            "so there is nothing to learn from and to point at."
        )
    return found


def _needed(candidates: Sequence[Candidate], plan: TrialPlan) -> list[str]:
    """Names of the films that any draw or any test asks for."""
    drawn = (c.drawn(plan.films[-1], seed) for c in candidates for seed in range(plan.seeds))
    asked = [*(film for films in drawn for film in films), *(film for c in candidates for film in c.tested)]
    return list(dict.fromkeys(film.id for film in asked))


def _tried(scene: Scene, candidates: Sequence[Candidate], plan: TrialPlan, track: Track) -> tuple[ConceptTrial, ...]:
    jobs = [(c, number, seed) for c in candidates for number in plan.films for seed in range(plan.seeds)]
    outcomes: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for candidate, number, seed in track(jobs, "learning concepts again", len(jobs)):
        prototypes, seconds = _learnt_again(scene, candidate, candidate.drawn(number, seed), seed, boxes=plan.boxes)
        outcomes.setdefault((candidate.name, number), []).append((scene.hits(candidate, prototypes), seconds))
    return tuple(
        _counted(scene, c, plan, [_shots(number, outcomes[c.name, number]) for number in plan.films])
        for c in candidates
    )


def _learnt_again(
    scene: Scene, candidate: Candidate, films: Sequence[FilmRecord], seed: int, *, boxes: bool
) -> tuple[Float[Tensor, "m d"], float]:
    """New prototypes, as a reader would learn them, and how many seconds it took."""
    examples = [scene.example(film, candidate.name, boxes=boxes) for film in films]
    atlas = scene.model.atlas
    began = perf_counter()
    others = all_but(atlas, candidate.row)
    start = starting_prototypes(scene.anchor(candidate.row), examples, others, atlas.kept.shape[1], seed=seed)
    return tune(start, examples, others, seed=seed), perf_counter() - began


def _shots(films: int, outcomes: Sequence[tuple[float, float]]) -> Shots:
    shares, seconds = zip(*outcomes, strict=True)
    return Shots(films, tuple(shares), float(np.median(seconds)))


def _counted(scene: Scene, candidate: Candidate, plan: TrialPlan, shots: Sequence[Shots]) -> ConceptTrial:
    blind = guess(scene.dataset, candidate.name, (plan.split,))
    if blind is None or blind.fixed is None:
        raise AssertionError(f"{candidate.name} has boxes on train and {plan.split} films")
    return ConceptTrial(
        name=candidate.name,
        title=scene.dataset.concepts[candidate.name].title,
        pairs=len(candidate.tested),
        to_learn_from=len(candidate.taught),
        full=scene.hits(candidate, scene.model.atlas.in_use[candidate.row].detach()),
        fixed=blind.fixed,
        chance=blind.random,
        shots=tuple(shots),
    )


def _warnings(candidates: Sequence[Candidate], plan: TrialPlan, known: set[str]) -> Iterator[str]:
    for one in candidates:
        if len(one.taught) < plan.films[-1]:
            yield f"Only {len(one.taught)} training films have a box of {one.name}: larger numbers mean these."
    seen = {film.id for one in candidates for film in one.tested} & known
    if seen:
        yield f"The model was trained or chosen on {len(seen):,} of the films that are pointed at."
