"""A new concept: few-shot tuning of its prototypes, its place in the vocabulary, and the model that includes it.

The prototypes of a new concept are fitted to a few example films; nothing else changes. The paper tunes them on the
examples alone, and gets worse with more of them. This does three things differently. The box is a prior: patches inside
it are positives, all others on the same film are negatives. Known concepts are negatives too: the prototypes of the
other concepts and of normal tissue. And early stopping uses the films themselves: it keeps the step at which the
finding stands out most on the film on which it stands out least.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from medgrape.concepts import Concept, ConceptSet, slug
from medgrape.errors import UserError
from medgrape.geometry import Box, FilmSize, PatchGrid
from medgrape.model.atlas import Atlas, perturbed
from medgrape.model.grape import Grape, head_sizes
from medgrape.plugins import find_recorded_plugin
from medgrape.records import Record
from medgrape.runs.checkpoint import Run
from medgrape.vocabulary.encoders import TextEncoderError, open_text_encoder

SCALE = 10.0  # lambda of the contrastive loss, as in stage 3
KNOWN = 0.3  # Weight of the loss against known concepts, relative to the loss against the rest of the same films
STEPS, LEARNING_RATE = 60, 0.05
MOST_NEGATIVES = 1024  # Number of patches outside the boxes that are used: those most similar to the finding
SHARPNESS = 20.0  # Of the choice of patches on films without a box: 0 weighs all equally, infinity takes the best
ITERATIONS = 3  # Number of times that the finding is located again on films without a box
AGREEMENT = 0.55  # Mean cosine between its prototypes: that of trained concepts, so that mean maps have one scale
TEXT_TOLERANCE = 1e-3  # Largest difference of an embedding from that at training: machines round differently


@dataclass(frozen=True)
class Example:
    """A film that shows the new concept."""

    patches: Float[Tensor, "d h w"]  # Unit vectors in the space of prototypes
    inside: Float[Tensor, "h w"] | None  # Fraction of each patch inside the boxes, from 0 to 1; None without a box


@dataclass(frozen=True)
class WeightedPatches:
    """The patches of an example with their weights as positives and a mask of the negatives."""

    patches: Float[Tensor, "n d"]
    weights: Float[Tensor, " n"]  # Sums to one
    outside: Bool[Tensor, " n"]

    def lead(self, direction: Float[Tensor, " d"]) -> float:
        """Return the similarity of the finding minus the highest similarity outside it."""
        cosines = self.patches @ direction
        highest = cosines[self.outside].max() if self.outside.any() else cosines.new_tensor(-1.0)
        return float((cosines * self.weights).sum() - highest)


def tune(
    start: Float[Tensor, "m d"], examples: Sequence[Example], others: Float[Tensor, "n d"], *, seed: int
) -> Float[Tensor, "m d"]:
    """Return the prototypes fitted to the films, each film with equal weight.

    ``others`` are all prototypes of other concepts and of normal tissue. On films without a box, the positives are the
    patches more similar to ``start`` than to any of those; then they are located again with the fitted prototypes.
    """
    if not examples:
        return start
    anchor = F.normalize(start.mean(dim=0), dim=-1)
    direction = _fitted([_weighted(example, anchor, others) for example in examples], others)
    if any(example.inside is None for example in examples):
        for _ in range(ITERATIONS):
            direction = _fitted([_weighted(example, direction, others) for example in examples], others)
    sigma = (1 / AGREEMENT - 1) ** 0.5
    return perturbed(direction, len(start), torch.Generator().manual_seed(seed), sigma)


def _weighted(example: Example, direction: Float[Tensor, " d"], others: Float[Tensor, "n d"]) -> WeightedPatches:
    patches = rearrange(example.patches, "d h w -> (h w) d")
    if example.inside is not None:
        coverage = rearrange(example.inside, "h w -> (h w)")
        core = torch.where(coverage >= coverage.max() / 2, coverage, torch.zeros_like(coverage))
        return WeightedPatches(patches, core / core.sum(), coverage == 0)
    lead = einsum(example.patches, direction, "d h w, d -> h w") - likeness(example.patches, others)
    weights = rearrange(softmax_over_patches(SHARPNESS * lead), "h w -> (h w)")
    return WeightedPatches(patches, weights, weights < weights.max() / 20)


def _fitted(films: Sequence[WeightedPatches], others: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """Return the direction that separates the finding from the rest of the films and from known concepts."""
    inside = torch.cat([film.patches for film in films])
    weights = torch.cat([film.weights for film in films]) / len(films)
    inside, weights = inside[weights > 0], weights[weights > 0]
    mean = F.normalize((inside * weights.unsqueeze(1)).sum(dim=0), dim=-1)
    outside = torch.cat([film.patches[film.outside] for film in films])
    outside = outside[(outside @ mean).topk(min(MOST_NEGATIVES, len(outside))).indices]
    vector, best, best_lead = mean.clone().requires_grad_(True), mean, -2.0
    optimiser = torch.optim.Adam([vector], lr=LEARNING_RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        direction = F.normalize(vector, dim=-1)
        logits = SCALE * (inside @ direction)
        loss = (weights * _cross_entropy(logits, SCALE * (outside @ direction))).sum()
        loss = loss + KNOWN * (weights * _cross_entropy(logits, SCALE * (others @ direction))).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        direction = F.normalize(vector.detach(), dim=-1)
        lead = min(film.lead(direction) for film in films)
        if lead > best_lead:
            best, best_lead = direction, lead
    return best


def _cross_entropy(positives: Float[Tensor, " n"], negatives: Float[Tensor, " o"]) -> Float[Tensor, " n"]:
    """Return minus the log of each positive's softmax against all negatives."""
    if len(negatives) == 0:
        return torch.zeros_like(positives)
    return torch.logaddexp(positives, torch.logsumexp(negatives, dim=0)) - positives


def weighted_mean(patches: Float[Tensor, "d h w"], weights: Float[Tensor, "h w"]) -> Float[Tensor, " d"]:
    """Return the mean patch as a unit vector."""
    return F.normalize(einsum(patches, weights, "d h w, h w -> d"), dim=-1)


def likeness(patches: Float[Tensor, "d h w"], others: Float[Tensor, "n d"]) -> Float[Tensor, "h w"]:
    """Return each patch's similarity to the nearest of ``others``; 0 if there are none."""
    if len(others) == 0:
        return torch.zeros_like(patches[0])
    return einsum(others, patches, "n d, d h w -> n h w").amax(dim=0)


def softmax_over_patches(logits: Float[Tensor, "h w"]) -> Float[Tensor, "h w"]:
    """Return weights that sum to one over the film."""
    return logits.flatten().softmax(dim=0).view_as(logits)


class NewConceptError(UserError):
    """A concept that cannot be added as requested."""


@dataclass(frozen=True)
class ConceptWeights:
    """The tensors of a new concept."""

    prototypes: Float[Tensor, "m d"]
    text: Float[Tensor, "1 t"] | None  # The embedding of its description; None for a model without a text encoder


class KnownConcept(Record):
    """A concept of a run, and how the run learnt it."""

    name: str
    title: str
    description: str
    trained: bool  # Whether the whole model was trained with it; otherwise it was added later
    judged: bool  # Whether the head uses it
    taught_by_films: bool  # False if only its description is known


def known_concepts(run: Run) -> tuple[KnownConcept, ...]:
    """Return all concepts of a run, in its order."""
    trained, untaught = head_sizes(run.grape.head, run.grape.head_concepts)[0], set(run.metrics["untrained_concepts"])
    return tuple(
        KnownConcept(
            name=concept.name, title=concept.title, description=concept.description, trained=row < trained,
            judged=row < run.grape.head_concepts, taught_by_films=concept.name not in untaught,
        )
        for row, concept in enumerate(run.concepts)
    )  # fmt: skip


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
        reason = "This model has no text encoder (text.encoder is 'none')"
        raise NewConceptError(f"{reason}, so {concept.name} needs at least one example film.")
    anchor = None if text is None or run.grape.anchors is None else run.grape.anchors.of(text)[0].detach()
    others = all_but(run.grape.atlas)
    start = starting_prototypes(anchor, examples, others, run.config.model.prototypes, seed=seed)
    return ConceptWeights(tune(start, examples, others, seed=seed), text)


def starting_prototypes(
    anchor: Float[Tensor, " d"] | None, examples: Sequence[Example], others: Float[Tensor, "n d"], count: int, seed: int
) -> Float[Tensor, "m d"]:
    """Return perturbed copies of the text anchor (paper Eq. 9); without text, of the mean of the examples."""
    if anchor is None:
        vectors = []
        for example in examples:
            weights = example.inside
            if weights is None:  # the patches least similar to anything known
                weights = softmax_over_patches(-SHARPNESS * likeness(example.patches, others))
            vectors.append(weighted_mean(example.patches, weights))
        anchor = F.normalize(torch.stack(vectors).mean(dim=0), dim=-1)
    return perturbed(anchor, count, torch.Generator().manual_seed(seed))


def all_but(atlas: Atlas, row: int | None = None) -> Float[Tensor, "n d"]:
    """Return the prototypes in use of all concepts but ``row``, and those of normal tissue."""
    concepts = [vectors for number, vectors in enumerate(atlas.in_use) if number != row]
    normal = [] if atlas.ordinary is None else [F.normalize(atlas.ordinary, dim=-1)]
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
    if "text encoder" in run.plugins:
        find_recorded_plugin("text encoder", run.plugins["text encoder"])  # or say which package to install
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
