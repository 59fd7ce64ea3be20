"""Which prototypes a model goes by: list them with the films behind them, discard some, restore them.

A discarded prototype stays where it is. It is in no map and behind no explanation from then on, and the head hears in
its place what it says on films without the concept. No other concept changes, to the last bit. Thresholds of the safety
check were learnt on maps that are others now, so they are dropped.
"""

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from einops import repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor

from medgrape.errors import UserError
from medgrape.runs.checkpoint import LoadedRun, Run

_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")


class CurationError(UserError):
    """Prototypes that cannot be discarded or restored as asked."""


@dataclass(frozen=True)
class Usage:
    """What the prototypes do on the training films of a data set."""

    shown: Int[np.ndarray, " k"]
    """Training films that show each concept."""
    strongest: Int[np.ndarray, "k m"]
    """On how many of these each prototype answers most strongly of its concept's; 0 for discarded ones."""
    in_box: Float[np.ndarray, "k m"]
    """On which share of those with a box its best patch touches one of the concept; NaN where there are none."""


@dataclass(frozen=True)
class PrototypeCard:
    """What there is to say about one prototype."""

    concept: str
    number: int
    """Within its concept, from 0."""
    kept: bool
    film: str | None
    """The training film with the patch nearest to it; None where none may be shown."""
    patch: tuple[int, int] | None
    """Row and column of that patch on the model's grid."""
    similarity: float | None
    """Of that patch; None where no training film shows the concept."""
    absent: float
    """Its usual score on films without the concept."""
    typical: float
    """Cosine with the mean of its concept's prototypes: how much it is like the others."""
    raises: str | None
    """The class that gains most when it alone answers as on its own film, on a film that shows nothing else; None where
    the head does not listen to it."""
    gain: float | None
    """By how much that class's probability rises."""
    shown: int | None = None
    strongest: int | None = None
    in_box: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def prototypes_of(run: Run, concept: str | None = None, usage: Usage | None = None) -> tuple[PrototypeCard, ...]:
    """The prototypes of one concept, or of all, in the order of their numbers."""
    wanted = range(len(run.concepts)) if concept is None else [run.concepts.index(concept)]
    return tuple(card for row in wanted for card in _cards(run, row, usage))


def discard(loaded: LoadedRun, concept: str, numbers: Iterable[int]) -> LoadedRun:
    """A run without some prototypes of a concept; ``loaded`` stays as it is."""
    chosen = _chosen(loaded.run, concept, numbers, kept=True)
    kept = loaded.run.model.atlas.kept.clone()
    kept[loaded.run.concepts.index(concept), list(chosen)] = False
    if not kept[loaded.run.concepts.index(concept)].any():
        raise CurationError(f"That would leave {concept} without any prototype; keep at least one.")
    return _curated(loaded, kept, f"Discarded {_named(chosen)} of {concept}.")


def restore(loaded: LoadedRun, concept: str, numbers: Iterable[int]) -> LoadedRun:
    """The inverse of ``discard``."""
    chosen = _chosen(loaded.run, concept, numbers, kept=False)
    kept = loaded.run.model.atlas.kept.clone()
    kept[loaded.run.concepts.index(concept), list(chosen)] = True
    return _curated(loaded, kept, f"Restored {_named(chosen)} of {concept}.")


def numbers_in(text: str) -> tuple[int, ...]:
    """``3,7,12-15`` as numbers."""
    found: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise CurationError(f"Prototypes are named like 3,7,12-15; {text!r} is not.")
        found.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(set(found)))


def spelled(numbers: Iterable[int]) -> str:
    """Numbers as ``numbers_in`` reads them."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _curated(loaded: LoadedRun, kept: Bool[Tensor, "k m"], what: str) -> LoadedRun:
    run = loaded.run
    model = deepcopy(run.grape)
    model.atlas.curated(kept, run.usual.absent)
    again = "" if run.safety is None else " The safety check has to be calibrated again."
    return loaded.changed(replace(run, model=model, safety=None), what + again)


def _chosen(run: Run, concept: str, numbers: Iterable[int], *, kept: bool) -> tuple[int, ...]:
    """The numbers, after looking whether each is there and in the state that is to be changed."""
    states: list[bool] = run.model.atlas.kept[run.concepts.index(concept)].tolist()
    chosen = tuple(sorted(set(numbers)))
    if not chosen:
        raise CurationError(f"Name at least one prototype of {concept}, from 0 to {len(states) - 1}.")
    for number in chosen:
        if not 0 <= number < len(states):
            raise CurationError(f"The prototypes of {concept} are 0 to {len(states) - 1}; there is no {number}.")
        if states[number] != kept:
            already = "kept as it is" if states[number] else "discarded already"
            raise CurationError(f"Prototype {number} of {concept} is {already}; leave it out.")
    return chosen


def _named(numbers: tuple[int, ...]) -> str:
    return f"prototype{'s' if len(numbers) > 1 else ''} {spelled(numbers)}"


def _cards(run: Run, row: int, usage: Usage | None) -> list[PrototypeCard]:
    films, own = run.exemplars, run.model.atlas.prototypes[row]
    typical = torch.cosine_similarity(own, own.mean(dim=0, keepdim=True), dim=-1)
    gains = _gains(run, row)
    cards = []
    for number in range(len(own)):
        film, similarity = int(films.film[row, number]), float(films.similarity[row, number])
        kept = bool(run.model.atlas.kept[row, number])
        raises, gain = gains[number] if gains is not None and kept else (None, None)
        down, across = divmod(int(films.patch[row, number]), films.grid[1])
        card = PrototypeCard(
            concept=run.concepts.names[row],
            number=number,
            kept=kept,
            film=None if film < 0 else films.films[film],
            patch=None if film < 0 else (down, across),
            similarity=similarity if similarity >= -1.0 else None,
            absent=float(run.usual.absent[row, number]),
            typical=float(typical[number]),
            raises=raises,
            gain=gain,
        )
        cards.append(card if usage is None else _with_usage(card, usage, row))
    return cards


def _with_usage(card: PrototypeCard, usage: Usage, row: int) -> PrototypeCard:
    touched = float(usage.in_box[row, card.number])
    return replace(
        card,
        shown=int(usage.shown[row]),
        strongest=int(usage.strongest[row, card.number]),
        in_box=None if np.isnan(touched) else touched,
    )


@torch.no_grad()
def _gains(run: Run, row: int) -> list[tuple[str, float]] | None:
    """For each prototype the class that it raises most, and by how much; every other prototype says its usual."""
    if row >= run.model.judged:
        return None
    usual, peak = run.usual.absent, torch.from_numpy(run.exemplars.similarity[row])
    found = repeat(usual, "k m -> n k m", n=usual.shape[1]).clone()
    found.diagonal(dim1=0, dim2=2)[row] = torch.where(peak >= -1.0, peak, usual[row])
    moved = run.model.judge(found).probabilities - run.model.judge(usual.unsqueeze(0)).probabilities
    best = moved.max(dim=1)
    return [
        (run.classes[place], value) for place, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
