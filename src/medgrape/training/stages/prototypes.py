"""Stage 3: projector, prototypes and text projection learn from the vectors of stage 2, and perhaps whole films."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config import PrototypeStage
from medgrape.model.atlas import perturbed
from medgrape.model.evidence import mean_maps
from medgrape.model.grape import Grape
from medgrape.training.films import TrainingFilms, shuffled, whole_batch
from medgrape.training.losses import (
    alignment_loss,
    contrastive_loss,
    detection_loss,
    dispersion_loss,
    film_rarity,
    masked_similarity,
    pointing_loss,
    rarity_weights,
    soft_similarity,
)
from medgrape.training.stage import Figure, balanced_accuracy, evaluating
from medgrape.training.stages.vectors import Vectors
from medgrape.training.stored_features import Patches

NOISE = 0.01
"""Of repeated vectors, where a concept has fewer films than prototypes."""


@dataclass(frozen=True)
class StartingPoints:
    """One set of M for each group, and the groups that no film taught anything."""

    prototypes: Float[Tensor, "groups m d"]
    untrained: tuple[int, ...]


def starting_points(
    projected: Float[Tensor, "n d"],
    groups: Int[Tensor, " n"],
    count: int,
    prototypes: int,
    anchors: Float[Tensor, "k d"] | None,
    seed: int,
) -> StartingPoints:
    """For each of ``count`` groups: k-means; too few vectors: repeated with noise; none: the text anchor, or chance."""
    generator = torch.Generator().manual_seed(seed)
    placed, untrained = [], []
    for group in range(count):
        own = projected[groups == group]
        if len(own) == 0:
            untrained.append(group)
            placed.append(_without_films(group, prototypes, projected.shape[1], anchors, generator))
        elif len(own) < prototypes:
            placed.append(_repeated(own, prototypes, generator))
        else:
            placed.append(_k_means(own, prototypes, seed))
    return StartingPoints(torch.stack(placed), tuple(untrained))


def _without_films(
    group: int, prototypes: int, width: int, anchors: Float[Tensor, "k d"] | None, generator: torch.Generator
) -> Float[Tensor, "m d"]:
    if anchors is None or group >= len(anchors):
        return F.normalize(torch.randn(prototypes, width, generator=generator), dim=-1)
    return perturbed(anchors[group].detach(), prototypes, generator)


def _repeated(own: Float[Tensor, "n d"], prototypes: int, generator: torch.Generator) -> Float[Tensor, "m d"]:
    rows = own[torch.arange(prototypes) % len(own)]
    noise = NOISE * torch.randn(rows.shape, generator=generator)
    noise[: len(own)] = 0.0  # each film's own vector stays what it is
    return F.normalize(rows + noise, dim=-1)


def _k_means(own: Float[Tensor, "n d"], prototypes: int, seed: int) -> Float[Tensor, "m d"]:
    from sklearn.cluster import KMeans  # slow to import
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # sums in another order would end in other bytes
        found = KMeans(prototypes, n_init=1, random_state=seed).fit(own.double().numpy())
    return F.normalize(torch.from_numpy(np.asarray(found.cluster_centers_)).float(), dim=-1)


FILMS = 32
"""Whole films beside each batch of vectors."""


class PrototypeLearner(nn.Module):
    """The parts that learn here, under their names."""

    def __init__(self, model: Grape) -> None:
        super().__init__()
        self.projector, self.atlas, self.anchors = model.projector, model.atlas, model.anchors


@dataclass(frozen=True)
class WholeFilms:
    """Features of all patches of some films, and what these show."""

    features: Float[Tensor, "b c h w"]
    labels: Float[Tensor, "b k"]


@dataclass(frozen=True)
class Batch:
    """Vectors and the concepts they stand for; films for the detection loss."""

    vectors: Float[Tensor, "n c"]
    groups: Int[Tensor, " n"]
    films: WholeFilms | None = None


class PrototypeLesson:
    """Stage 3 for the loop."""

    name = "prototypes"

    def __init__(
        self,
        model: Grape,
        found: Vectors,
        films: TrainingFilms,
        schedule: PrototypeStage,
        seed: int,
        device: torch.device,
        patches: Patches | None = None,
    ) -> None:
        self._patches, self._labels = patches, films.labels
        self.schedule, self._found, self._seed, self._device = schedule, found, seed, device
        self._model = model
        self.learner: nn.Module = PrototypeLearner(model)
        self._groups = model.atlas.contrasted.shape[0]
        self._films = films.positions("train")
        self._rarity = film_rarity(films.labels[self._films]).double().numpy()
        learning, validating = set(self._films), set(films.positions("val"))
        self._learning = [row for row, film in enumerate(found.films.tolist()) if film in learning]
        self._validating = [row for row, film in enumerate(found.films.tolist()) if film in validating]
        counted = torch.from_numpy(found.groups[self._learning].copy())
        self._weights = rarity_weights(counted, self._groups) if schedule.balance else torch.ones(self._groups)

    @torch.no_grad()
    def place(self) -> None:
        """Put the prototypes where they start."""
        batch = self._batch(self._learning)
        anchors = None if self._model.anchors is None else self._model.anchors().cpu()
        with evaluating(self.learner):
            projected = self._model.projector(batch.vectors).cpu()
        start = starting_points(
            projected, batch.groups.cpu(), self._groups, self._model.atlas.vectors.shape[1], anchors, self._seed
        )
        self._model.atlas.place(start.prototypes.to(self._device))

    @torch.no_grad()
    def push(self) -> None:
        """Let every concept's prototypes be vectors of training films; a concept that none shows stays as it is."""
        batch = self._batch(self._learning)
        with evaluating(self.learner):
            projected = self._model.projector(batch.vectors)
        pushed = self._model.atlas.contrasted.clone()
        for group in range(self._groups):
            own = projected[batch.groups == group]
            if len(own):
                pushed[group] = own[(pushed[group] @ own.T).argmax(dim=1)]
        self._model.atlas.place(pushed)

    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._learning) // whole_batch(len(self._learning), self.schedule.batch, 1)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """All vectors of training films, in an order drawn by lot."""
        chance = np.random.default_rng((self._seed, 4, epoch))
        for rows in shuffled(self._learning, self.schedule.batch, (0, 1), self._seed, 3, epoch):
            yield replace(self._batch(rows), films=self._drawn(chance))

    def _drawn(self, chance: np.random.Generator) -> WholeFilms | None:
        """Some training films by lot, those with a rare finding more often; none without the detection loss."""
        if self._patches is None:
            return None
        count = min(FILMS, len(self._films))
        drawn = np.sort(chance.choice(self._films, count, replace=False, p=self._rarity / self._rarity.sum()))
        features = torch.from_numpy(self._patches[drawn]).float()
        return WholeFilms(features.to(self._device), self._labels[drawn].to(self._device))

    def _batch(self, rows: list[int]) -> Batch:
        vectors = torch.from_numpy(self._found.vectors[rows]).to(self._device)
        return Batch(vectors, torch.from_numpy(self._found.groups[rows]).to(self._device))

    def loss(self, learner: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Contrastive, alignment with text once, and where asked for dispersion."""
        del learner  # one process: the model's own parts are the learner's
        return prototype_loss(self._model, batch, self.schedule, self._weights)

    @torch.no_grad()
    def validate(self) -> Figure:
        """How often a vector of a validation film is nearest to its own concept."""
        batch = self._batch(self._validating)
        with evaluating(self.learner):
            similarity = soft_similarity(
                self._model.projector(batch.vectors), self._model.atlas.contrasted, self.schedule.sharpness
            )
            weights = self._weights.to(similarity.device)
            loss = contrastive_loss(similarity, batch.groups, self.schedule.scale, self.schedule.margin, weights)
        return Figure(balanced_accuracy(similarity.argmax(dim=1), batch.groups), float(loss), "balanced accuracy")


def prototype_loss(
    model: Grape, batch: Batch, schedule: PrototypeStage, weights: Float[Tensor, " groups"]
) -> Float[Tensor, ""]:
    """The stage's loss for some vectors; the end-to-end variant uses it too."""
    projected = model.projector(batch.vectors)
    similarity = masked_similarity(projected, model.atlas.contrasted, schedule.sharpness, schedule.mask_above)
    weights = weights.to(similarity.device)
    total = contrastive_loss(similarity, batch.groups, schedule.scale, schedule.margin, weights)
    if schedule.alignment and model.anchors is not None:
        total = total + schedule.alignment * alignment_loss(model.atlas.prototypes, model.anchors())
    if schedule.pointing:
        means = projected @ model.atlas.prototypes.mean(dim=1).T
        total = total + schedule.pointing * pointing_loss(means, batch.groups, weights)
    if batch.films is not None:
        maps = mean_maps(model.projector.patches(batch.films.features), list(model.atlas.prototypes))
        total = total + schedule.detection * detection_loss(maps, batch.films.labels)
    if schedule.dispersion:
        total = total + schedule.dispersion * dispersion_loss(model.atlas.contrasted)
    return total
