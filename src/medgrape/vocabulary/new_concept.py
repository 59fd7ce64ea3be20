"""The parts of a new concept: its prototypes, its place in the vocabulary, and the model that includes it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

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
from medgrape.plugins import find_recorded_plugin
from medgrape.records import Record
from medgrape.runs.checkpoint import Run
from medgrape.vocabulary.encoders import TextEncoderError, open_text_encoder
from medgrape.vocabulary.few_shot import SHARPNESS, Example, likeness, softmax_over_patches, tune, weighted_mean

TEXT_TOLERANCE = 1e-3
"""Largest difference of an embedding from that at training: machines round differently."""


class NewConceptError(UserError):
    """A concept that cannot be added as requested."""


@dataclass(frozen=True)
class ConceptWeights:
    """The tensors of a new concept."""

    prototypes: Float[Tensor, "m d"]
    text: Float[Tensor, "1 t"] | None
    """The embedding of its description; None for a model without a text encoder."""


class KnownConcept(Record):
    """A concept of a run, and how the run learnt it."""

    name: str
    title: str
    description: str
    trained: bool
    """Whether the whole model was trained with it; otherwise it was added later."""
    judged: bool
    """Whether the head uses it."""
    taught_by_films: bool
    """False if only its description is known."""


def known_concepts(run: Run) -> tuple[KnownConcept, ...]:
    """Return all concepts of a run, in its order."""
    trained, untaught = head_sizes(run.grape.head, run.grape.judged)[0], set(run.metrics["untrained_concepts"])
    return tuple(
        KnownConcept(
            name=concept.name,
            title=concept.title,
            description=concept.description,
            trained=row < trained,
            judged=row < run.grape.judged,
            taught_by_films=concept.name not in untaught,
        )
        for row, concept in enumerate(run.concepts)
    )


def with_concept(concepts: ConceptSet, concept: Concept) -> ConceptSet:
    """Return the vocabulary with one more concept; a name or title that is already in use is an error."""
    titles = {known.title.casefold(): known.name for known in concepts}
    for label in (concept.name, concept.title):
        latin = slug(label) != slug("")  # a title in another script has no slug to compare
        existing = concepts.published(label) if latin else titles.get(label.casefold())
        if existing is not None:
            raise NewConceptError(f"The model has {label!r} already, as concept {existing!r}; choose another name.")
    return ConceptSet((*concepts.concepts, concept))


def teach(run: Run, concept: Concept, examples: Sequence[Example], *, seed: int = 0) -> ConceptWeights:
    """Return the prototypes of a new concept, from its description, from films, or from both."""
    text = _encoded(run, concept.description)
    if text is None and not examples:
        raise NewConceptError(
            f"This model has no text encoder (text.encoder is 'none'), so {concept.name} needs at least one example "
            "film."
        )
    anchor = None if text is None or run.grape.anchors is None else run.grape.anchors.of(text)[0].detach()
    others = all_but(run.grape.atlas)
    start = starting_prototypes(anchor, examples, others, run.config.model.prototypes, seed=seed)
    return ConceptWeights(tune(start, examples, others, seed=seed), text)


def starting_prototypes(
    anchor: Float[Tensor, " d"] | None,
    examples: Sequence[Example],
    others: Float[Tensor, "n d"],
    count: int,
    *,
    seed: int,
) -> Float[Tensor, "m d"]:
    """Return perturbed copies of the text anchor (paper Eq. 9); without text, of the mean of the examples."""
    if anchor is None:
        vectors = []
        for example in examples:
            weights = example.inside
            if weights is None:  # the patches least similar to anything known
                weights = softmax_over_patches(-SHARPNESS * likeness(example.patches, others))
            vectors.append(weighted_mean(example.patches, weights))
        anchor = nn.functional.normalize(torch.stack(vectors).mean(dim=0), dim=-1)
    return perturbed(anchor, count, torch.Generator().manual_seed(seed))


def all_but(atlas: Atlas, row: int | None = None) -> Float[Tensor, "n d"]:
    """Return the prototypes in use of all concepts but ``row``, and those of normal tissue."""
    concepts = [vectors for number, vectors in enumerate(atlas.in_use) if number != row]
    normal = [] if atlas.ordinary is None else [nn.functional.normalize(atlas.ordinary, dim=-1)]
    return torch.cat([atlas.prototypes.new_empty(0, atlas.prototypes.shape[-1]), *concepts, *normal]).detach()


def covered(boxes: Sequence[Box], film: FilmSize, grid: tuple[int, int]) -> Float[Tensor, "h w"]:
    """Return the fraction of each patch, from 0 to 1, that a box covers; the largest one where boxes overlap."""
    patches = PatchGrid(film, *grid)
    return torch.from_numpy(np.maximum.reduce([patches.overlap(box) for box in boxes])).float()


def widened(model: Grape, added: ConceptWeights, silent: Float[Tensor, " m"]) -> Grape:
    """Return a copy of the model with one more concept; everything else stays the same to the last bit."""
    model = deepcopy(model)
    atlas = model.atlas
    vectors = torch.cat([atlas.vectors.detach(), added.prototypes.unsqueeze(0)])
    atlas.vectors = nn.Parameter(vectors, requires_grad=atlas.vectors.requires_grad)
    atlas.kept = torch.cat([atlas.kept, torch.ones_like(atlas.kept[:1])])
    atlas.silent = torch.cat([atlas.silent, silent.unsqueeze(0)])
    if model.anchors is not None and added.text is not None:
        model.anchors.text = torch.cat([model.anchors.text, added.text])
    return model


def _encoded(run: Run, description: str) -> Float[Tensor, "1 t"] | None:
    """Encode the description with the encoder that the run was trained with; None if it has none."""
    anchors = run.grape.anchors
    if anchors is None:
        return None
    if "text encoder" in run.own_parts:
        find_recorded_plugin("text encoder", run.own_parts["text encoder"])  # or say which package to install
    encoder = open_text_encoder(run.config.text)
    sentences = [run.concepts.concepts[0].description, description]
    text = None if encoder is None else encoder.encode(sentences)
    same_width = text is not None and text.shape[1] == anchors.text.shape[1]
    if text is None or not same_width or (text[0] - anchors.text[0]).abs().max() > TEXT_TOLERANCE:
        raise TextEncoderError(
            f"The text encoder {run.config.text.encoder!r} is not the one that the run was trained with "
            f"({run.metrics['text_encoder']}); install that one."
        )
    return text[1:].to(anchors.text.dtype)
