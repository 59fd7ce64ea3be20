"""Curation of the atlas: list prototypes with the films behind them, discard some, restore them.

A discarded prototype remains stored. It is excluded from all maps and explanations, and the head receives its reference
score on films without the concept instead of its score. Other concepts do not change, to the last bit. The calibrated
thresholds of the safety check are dropped, as they were learnt on other maps.
"""

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from einops import repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor

from medgrape.errors import UserError
from medgrape.records import Record
from medgrape.runs.checkpoint import LoadedRun, Run

_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")


class CurationError(UserError):
    """Prototypes that cannot be discarded or restored as requested."""


@dataclass(frozen=True)
class Usage:
    """Statistics of the prototypes on the training films of a data set."""

    shown: Int[np.ndarray, " k"]  # Number of training films that show each concept
    strongest: Int[np.ndarray, "k m"]  # Number of these films where it scores highest; 0 if discarded
    in_box: Float[np.ndarray, "k m"]  # Fraction of the films with a box where its best patch overlaps it; NaN if none


class PrototypeCard(Record):
    """Description of one prototype."""

    concept: str
    number: int  # Within its concept, from 0
    kept: bool
    film: str | None  # The training film with the nearest patch; None if none may be shown
    patch: tuple[int, int] | None  # Row and column of that patch on the model's grid
    similarity: float | None  # Cosine with that patch; None if no training film shows the concept
    absent: float  # Reference score on films without the concept
    typical: float  # Cosine with the mean of its concept's prototypes
    raises: str | None
    """The class whose probability rises most when this prototype gets the score of its own film and all others keep
    their reference scores; None if the head does not use the concept."""
    gain: float | None  # The rise of that probability
    shown: int | None = None
    strongest: int | None = None
    in_box: float | None = None


def prototypes_of(run: Run, concept: str | None = None, usage: Usage | None = None) -> tuple[PrototypeCard, ...]:
    """Return the prototypes of one concept, or of all, in the order of their numbers."""
    rows = range(len(run.concepts)) if concept is None else [run.concepts.index(concept)]
    return tuple(card for row in rows for card in _cards(run, row, usage))


def discard(loaded: LoadedRun, concept: str, numbers: Iterable[int]) -> LoadedRun:
    """Return the run without some prototypes of a concept; ``loaded`` does not change."""
    return _with_kept(loaded, concept, numbers, kept=False)


def restore(loaded: LoadedRun, concept: str, numbers: Iterable[int]) -> LoadedRun:
    """Return the run with some discarded prototypes of a concept restored."""
    return _with_kept(loaded, concept, numbers, kept=True)


def numbers_in(text: str) -> tuple[int, ...]:
    """Parse numbers such as ``3,7,12-15``."""
    numbers = set[int]()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise CurationError(f"Prototypes are named like 3,7,12-15, not like {text!r}.")
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(numbers))


def spelled(numbers: Iterable[int]) -> str:
    """Format numbers as ``numbers_in`` parses them."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 2 else ", ".join(map(str, r)) for r in ranges)


def _with_kept(loaded: LoadedRun, concept: str, numbers: Iterable[int], *, kept: bool) -> LoadedRun:
    """Set the state of some prototypes, each of which must exist and be in the other state."""
    run, row = loaded.run, loaded.run.concepts.index(concept)
    mask: Bool[Tensor, "k m"] = run.model.atlas.kept.clone()
    last = mask.shape[1] - 1
    chosen = sorted(set(numbers))
    if not chosen:
        raise CurationError(f"Name at least one prototype of {concept}, from 0 to {last}.")
    for number in chosen:
        if not 0 <= number <= last:
            raise CurationError(f"The prototypes of {concept} are 0 to {last}; there is no {number}.")
        if bool(mask[row, number]) == kept:
            raise CurationError(
                f"Prototype {number} of {concept} is {'not discarded' if kept else 'discarded already'}; leave it out."
            )
    mask[row, chosen] = kept
    if not mask[row].any():
        raise CurationError(f"That would leave {concept} without any prototype; keep at least one.")
    model = deepcopy(run.grape)
    model.atlas.curated(mask, run.reference_scores.absent)
    what = f"{'Restored' if kept else 'Discarded'} prototype{'s' if len(chosen) > 1 else ''} {spelled(chosen)}"
    again = "" if run.safety is None else " The safety check has to be calibrated again."
    return loaded.changed(replace(run, model=model, safety=None), f"{what} of {concept}.{again}")


def _cards(run: Run, row: int, usage: Usage | None) -> list[PrototypeCard]:
    films, prototypes = run.exemplars, run.model.atlas.prototypes[row]
    typical = torch.cosine_similarity(prototypes, prototypes.mean(dim=0, keepdim=True), dim=-1)
    gains = _gains(run, row)
    cards = []
    for number in range(len(prototypes)):
        place = (row, number)
        film, similarity, kept = (
            int(films.film[place]),
            float(films.similarity[place]),
            bool(run.model.atlas.kept[place]),
        )
        raises, gain = gains[number] if gains is not None and kept else (None, None)
        card = PrototypeCard(
            concept=run.concepts.names[row], number=number, kept=kept,
            film=None if film < 0 else films.films[film],
            patch=None if film < 0 else divmod(int(films.patch[place]), films.grid[1]),
            similarity=similarity if similarity >= -1.0 else None,
            absent=float(run.reference_scores.absent[place]), typical=float(typical[number]), raises=raises, gain=gain,
        )  # fmt: skip
        if usage is not None:
            in_box = None if np.isnan(usage.in_box[place]) else float(usage.in_box[place])
            counts = {"shown": int(usage.shown[row]), "strongest": int(usage.strongest[place]), "in_box": in_box}
            card = card.model_copy(update=counts)
        cards.append(card)
    return cards


@torch.no_grad()
def _gains(run: Run, row: int) -> list[tuple[str, float]] | None:
    """Return, for each prototype, the class that it raises most, and by how much."""
    if row >= run.model.head_concepts:
        return None
    reference, nearest = run.reference_scores.absent, torch.from_numpy(run.exemplars.similarity[row])
    scores = repeat(reference, "k m -> n k m", n=reference.shape[1]).clone()
    scores.diagonal(dim1=0, dim2=2)[row] = torch.where(nearest >= -1.0, nearest, reference[row])
    rise = run.model.classify(scores).probabilities - run.model.classify(reference.unsqueeze(0)).probabilities
    best = rise.max(dim=1)
    return list(zip([run.classes[place] for place in best.indices.tolist()], best.values.tolist(), strict=True))
