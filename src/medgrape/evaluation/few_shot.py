"""Leave-one-out trial of few-shot learning: forget a concept, learn it again from few films, test where it points.

This is the evaluation of the paper's Module C. Backbone and projector are not retrained, and they were trained with the
concept. As in the paper, the trial thus measures how well prototypes are learned from few films, not how a model copes
with a finding that it never saw. Unlike in the paper, the text projection forgets the concept (``untaught_anchor``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.datasets.statistics import blind_pointing
from medgrape.evaluation.few_shot_films import Candidate, EncodedFilms, encode_films
from medgrape.evaluation.localisation import boxes_of
from medgrape.evaluation.readings import EvaluationError
from medgrape.files import write_json
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun
from medgrape.safety.boxes import known_films
from medgrape.vocabulary.new_concept import all_but, starting_prototypes, tune


@dataclass(frozen=True)
class Spread:
    """Mean of a figure over the seeds, with its scatter; the latter is None for a single seed."""

    mean: float
    sd: float | None  # standard deviation
    se: float | None  # standard error of the mean

    @classmethod
    def of(cls, figures: Sequence[float]) -> "Spread":
        """Compute the spread of one figure for each seed."""
        sd = float(np.std(figures, ddof=1)) if len(figures) > 1 else None
        return cls(float(np.mean(figures)), sd, None if sd is None else sd / len(figures) ** 0.5)


@dataclass(frozen=True)
class Shots:
    """Results with one number of example films."""

    films: int
    by_seed: tuple[float, ...]  # pointing game (share of films with a hit) for each draw of examples
    seconds: float  # median time to learn, once the films are encoded

    @property
    def pointing(self) -> Spread:
        """The pointing game over the seeds."""
        return Spread.of(self.by_seed)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"films": self.films} | asdict(self.pointing) | {"by_seed": list(self.by_seed), "seconds": self.seconds}


@dataclass(frozen=True)
class ConceptTrial:
    """One concept that was forgotten and learned again."""

    name: str
    title: str
    pairs: int  # films with a box of it on which it was tested
    to_learn_from: int  # training films with a box of it, from which the examples were drawn
    full: float  # pointing game of the run's own prototypes: full supervision
    fixed: float  # pointing game of one fixed point, learned from the training boxes
    chance: float  # pointing game of a random point
    shots: tuple[Shots, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return vars(self) | {"shots": [shots.to_json() for shots in self.shots]}


@dataclass(frozen=True)
class VocabularyTrial:
    """The trials of all concepts."""

    run: str
    data_set: str
    split: str
    boxes: bool  # whether the examples had their boxes
    concepts: tuple[ConceptTrial, ...]
    warnings: tuple[str, ...] = ()

    @cached_property
    def average(self) -> ConceptTrial:
        """The mean over concepts, with equal weights."""
        shots = tuple(
            Shots(
                same[0].films,
                tuple(float(np.mean(seed)) for seed in zip(*(shots.by_seed for shots in same), strict=True)),
                float(np.median([shots.seconds for shots in same])),
            )
            for same in zip(*(concept.shots for concept in self.concepts), strict=True)
        )
        return ConceptTrial(
            name="mean",
            title="Mean over concepts",
            pairs=sum(concept.pairs for concept in self.concepts),
            to_learn_from=sum(concept.to_learn_from for concept in self.concepts),
            full=float(np.mean([concept.full for concept in self.concepts])),
            fixed=float(np.mean([concept.fixed for concept in self.concepts])),
            chance=float(np.mean([concept.chance for concept in self.concepts])),
            shots=shots,
        )

    def share_of_full(self, shots: Shots) -> Spread | None:
        """Divide the mean over concepts by that of full supervision; None if the latter never hits."""
        full = self.average.full
        return Spread.of([figure / full for figure in shots.by_seed]) if full > 0 else None

    @property
    def monotone(self) -> bool:
        """Whether more films never give a worse result, within one standard error of the difference by seed."""
        gains = (
            Spread.of([after - before for before, after in zip(fewer.by_seed, more.by_seed, strict=True)])
            for fewer, more in pairwise(self.average.shots)
        )
        return all(gain.mean + (gain.se or 0.0) >= 0 for gain in gains)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        shares = {shots.films: self.share_of_full(shots) for shots in self.average.shots}
        return {
            "run": self.run,
            "data_set": self.data_set,
            "split": self.split,
            "boxes": self.boxes,
            "concepts": [concept.to_json() for concept in self.concepts],
            "average": self.average.to_json(),
            "share_of_full": [{"films": n} | asdict(share) for n, share in shares.items() if share is not None],
            "monotone": self.monotone,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class TrialPlan:
    """Settings of a trial."""

    films: tuple[int, ...] = (0, 1, 5, 20)  # numbers of example films; 0: learn from the description alone
    seeds: int = 5
    boxes: bool = True  # False hides the boxes of the examples, not those that the test needs
    split: str = "test"  # films to test on; the examples are always training films

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
    """Forget and relearn every concept that has boxes both on training films and on films of the split."""
    plan, run, whole = _feasible_plan(plan or TrialPlan(), loaded), loaded.run, Dataset.load(data)
    cached = cached_films(run.config, whole, data, track)
    places = {whole.pictured[place].id: place for place in cached.readable()}
    dataset = replace(whole, films=tuple(film for film in whole.films if film.id in places))
    candidates = _candidates(loaded, dataset, plan)
    needed = [film for c in candidates for seed in range(plan.seeds) for film in c.draw_films(plan.films[-1], seed)]
    needed += [film for candidate in candidates for film in candidate.tested]
    patches = encode_films(run.grape, cached, {film.id: places[film.id] for film in needed}, track)
    encoded = EncodedFilms(run.grape, dataset, patches)
    jobs = [(c, number, seed) for c in candidates for number in plan.films for seed in range(plan.seeds)]
    outcomes: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for candidate, number, seed in track(jobs, "learning concepts again", len(jobs)):
        examples = candidate.draw_films(number, seed)
        prototypes, seconds = _learn_again(encoded, candidate, examples, seed, boxes=plan.boxes)
        outcomes.setdefault((candidate.name, number), []).append((encoded.hits(candidate, prototypes), seconds))
    concepts = []
    for candidate in candidates:
        results = [(number, list(zip(*outcomes[candidate.name, number], strict=True))) for number in plan.films]
        shots = tuple(Shots(number, hits, float(np.median(seconds))) for number, (hits, seconds) in results)
        concepts.append(_concept_trial(encoded, candidate, plan.split, shots))
    tested = {film.id for candidate in candidates for film in candidate.tested}
    known = known_films(run.learnt_from, whole, cached, tested)
    warnings = tuple(_warnings(candidates, plan, known))
    return VocabularyTrial(loaded.folder.name, dataset.name, plan.split, plan.boxes, tuple(concepts), warnings)


def write_trial(trial: VocabularyTrial, path: Path) -> None:
    """Write all figures to a JSON file."""
    write_json(path, trial.to_json(), indent=2)


def _feasible_plan(plan: TrialPlan, loaded: LoadedRun) -> TrialPlan:
    """Leave out learning from the description alone if the model reads no text."""
    if loaded.run.grape.anchors is not None:
        return plan
    if plan.films == (0,):
        raise EvaluationError("This model reads no text, so a concept needs films; try 1 or more of them.")
    return replace(plan, films=tuple(number for number in plan.films if number > 0))


def _candidates(loaded: LoadedRun, dataset: Dataset, plan: TrialPlan) -> list[Candidate]:
    candidates = []
    for name in (name for name in dataset.concepts.names if name in loaded.run.concepts):
        training, tested = (
            tuple(film for film in dataset.in_split(split) if boxes_of(dataset, film, name))
            for split in ("train", plan.split)
        )
        if training and tested:
            candidates.append(Candidate(name, loaded.run.concepts.index(name), training, tested))
    if not candidates:
        raise EvaluationError(
            f"No concept of the model has boxes on both train and {plan.split} films of {dataset.name!r}, "
            "so there is nothing to learn from and to point at."
        )
    return candidates


def _learn_again(
    encoded: EncodedFilms, candidate: Candidate, films: Sequence[FilmRecord], seed: int, *, boxes: bool
) -> tuple[Float[Tensor, "m d"], float]:
    """Return new prototypes, learned in the same way as in a reader, and the seconds that it took."""
    examples = [encoded.example(film, candidate.name, boxes=boxes) for film in films]
    atlas = encoded.model.atlas
    began = perf_counter()
    others = all_but(atlas, candidate.row)
    start = starting_prototypes(encoded.anchor(candidate.row), examples, others, atlas.kept.shape[1], seed=seed)
    return tune(start, examples, others, seed=seed), perf_counter() - began


def _concept_trial(encoded: EncodedFilms, candidate: Candidate, split: str, shots: tuple[Shots, ...]) -> ConceptTrial:
    blind = blind_pointing(encoded.dataset, candidate.name, (split,))
    if blind is None or blind.fixed is None:
        raise AssertionError(f"{candidate.name} has boxes on train and {split} films")
    return ConceptTrial(
        name=candidate.name,
        title=encoded.dataset.concepts[candidate.name].title,
        pairs=len(candidate.tested),
        to_learn_from=len(candidate.training),
        full=encoded.hits(candidate, encoded.model.atlas.in_use[candidate.row].detach()),
        fixed=blind.fixed,
        chance=blind.random,
        shots=shots,
    )


def _warnings(candidates: Sequence[Candidate], plan: TrialPlan, known: int) -> Iterator[str]:
    for candidate in candidates:
        films = len(candidate.training)
        if films < plan.films[-1]:
            yield f"Only {films} training films have a box of {candidate.name}: larger numbers mean these."
    if known:
        yield f"The model was trained or chosen on {known:,} of the films that are pointed at."
