"""A concept that a model did not have when it was trained: where it starts, and the model that knows it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.concepts import Concept, ConceptSet, slug
from medgrape.errors import UserError
from medgrape.geometry import Box, FilmSize, PatchGrid
from medgrape.model.atlas import Atlas, perturbed
from medgrape.model.grape import Grape
from medgrape.model.grown_head import head_sizes
from medgrape.plugins import same_again
from medgrape.runs.checkpoint import Run
from medgrape.vocabulary.encoder_folder import TextEncoderError
from medgrape.vocabulary.few_shot import SHARPNESS, Example, likeness, softmax_over_patches, tune, weighted_mean
from medgrape.vocabulary.text_encoder import open_text_encoder

SAME_TEXT = 1e-3
"""A sentence encoded again may differ by this much from what it was at training: machines round differently."""


class NewConceptError(UserError):
    """A concept that cannot be added as it was asked for."""


@dataclass(frozen=True)
class Taught:
    """What a new concept brings along."""

    prototypes: Float[Tensor, "m d"]
    text: Float[Tensor, "1 t"] | None
    """Its description, encoded; None for a model that reads no text."""


@dataclass(frozen=True)
class KnownConcept:
    """A concept of a run, and how the run came to it."""

    name: str
    title: str
    description: str
    trained: bool
    """Whether the whole model was trained with it; else it was learnt later."""
    judged: bool
    """Whether the head judges by it."""
    taught_by_films: bool
    """False where only its description is known."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def known_concepts(run: Run) -> tuple[KnownConcept, ...]:
    """All concepts of a run, in its order."""
    trained, untaught = head_sizes(run.grape.head, run.grape.judged)[0], set(run.metrics["untrained_concepts"])
    return tuple(
        KnownConcept(
            c.name,
            c.title,
            c.description,
            row < trained,
            row < run.grape.judged,
            taught_by_films=c.name not in untaught,
        )
        for row, c in enumerate(run.concepts)
    )


def with_concept(concepts: ConceptSet, concept: Concept) -> ConceptSet:
    """The vocabulary with one more; refused where it has that name, or a concept that people call so, already."""
    titles = {known.title.casefold(): known.name for known in concepts}
    for called in (concept.name, concept.title):
        latin = slug(called) != slug("")  # a title in another script leaves nothing to compare but itself
        taken = concepts.published(called) if latin else titles.get(called.casefold())
        if taken is not None:
            raise NewConceptError(f"The model has {called!r} already, as concept {taken!r}; choose another name.")
    return ConceptSet((*concepts.concepts, concept))


def teach(run: Run, concept: Concept, examples: Sequence[Example], *, seed: int = 0) -> Taught:
    """The prototypes of a new concept, from its description, from films, or from both."""
    text = _encoded(run, concept.description)
    if text is None and not examples:
        raise NewConceptError(
            f"This model reads no text (its text.encoder is 'none'), so {concept.name} needs at least one example film."
        )
    anchor = None if text is None or run.grape.anchors is None else run.grape.anchors.of(text)[0].detach()
    others = all_but(run.grape.atlas)
    start = starting_prototypes(anchor, examples, others, run.config.model.prototypes, seed=seed)
    return Taught(tune(start, examples, others, seed=seed), text)


def starting_prototypes(
    anchor: Float[Tensor, " d"] | None,
    examples: Sequence[Example],
    others: Float[Tensor, "n d"],
    count: int,
    *,
    seed: int,
) -> Float[Tensor, "m d"]:
    """Copies of the text anchor, each moved a little (paper Eq. 9); without text, of what the films show."""
    if anchor is None:
        seen = torch.stack([_unlike_others(example, others) for example in examples])
        anchor = nn.functional.normalize(seen.mean(dim=0), dim=-1)
    return perturbed(anchor, count, torch.Generator().manual_seed(seed))


def all_but(atlas: Atlas, row: int | None = None) -> Float[Tensor, "n d"]:
    """Prototypes in use of every concept, except perhaps one, and those of ordinary tissue."""
    own = [one for number, one in enumerate(atlas.in_use) if number != row]
    ordinary = [] if atlas.ordinary is None else [nn.functional.normalize(atlas.ordinary, dim=-1)]
    return torch.cat([atlas.prototypes.new_empty(0, atlas.prototypes.shape[-1]), *own, *ordinary]).detach()


def covered(boxes: Sequence[Box], film: FilmSize, grid: tuple[int, int]) -> Float[Tensor, "h w"]:
    """How much of each patch, from 0 to 1, the boxes cover; where two overlap, the larger share."""
    patches = PatchGrid(film, *grid)
    return torch.from_numpy(np.maximum.reduce([patches.overlap(box) for box in boxes])).float()


def widened(model: Grape, taught: Taught, silent: Float[Tensor, " m"]) -> Grape:
    """A copy of the model with one more concept. What it knew before, and how it judges, stays to the last bit."""
    wider = deepcopy(model)
    atlas = wider.atlas
    vectors = torch.cat([atlas.vectors.detach(), taught.prototypes.unsqueeze(0)])
    atlas.vectors = nn.Parameter(vectors, requires_grad=atlas.vectors.requires_grad)
    atlas.kept = torch.cat([atlas.kept, torch.ones_like(atlas.kept[:1])])
    atlas.silent = torch.cat([atlas.silent, silent.unsqueeze(0)])
    if wider.anchors is not None and taught.text is not None:
        wider.anchors.text = torch.cat([wider.anchors.text, taught.text])
    return wider


def _unlike_others(example: Example, others: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """The inside of the box; without one, the patches that look least like anything that is known."""
    if example.inside is not None:
        return weighted_mean(example.patches, example.inside)
    return weighted_mean(example.patches, softmax_over_patches(-SHARPNESS * likeness(example.patches, others)))


def _encoded(run: Run, description: str) -> Float[Tensor, "1 t"] | None:
    """The description as a vector, by the very encoder that the run was trained with; None where it had none."""
    anchors = run.grape.anchors
    if anchors is None:
        return None
    if "text encoder" in run.own_parts:
        same_again("text encoder", run.own_parts["text encoder"])  # or the package to install for it
    encoder = open_text_encoder(run.config.text)
    told = [run.concepts.concepts[0].description, description]
    found = None if encoder is None else encoder.encode(told)
    if found is None or found.shape[1] != anchors.text.shape[1] or (found[0] - anchors.text[0]).abs().max() > SAME_TEXT:
        raise TextEncoderError(
            f"The text encoder {run.config.text.encoder!r} is not the one that the run was trained with "
            f"({run.metrics['text_encoder']}); put that one in its place."
        )
    return found[1:].to(anchors.text.dtype)
