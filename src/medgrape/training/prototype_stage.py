"""Stage 3: projector, prototypes and text projection are trained on the vectors of stage 2, and on whole films."""

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
from medgrape.training import losses
from medgrape.training.films import shuffled
from medgrape.training.stage import StageTraining, ValidationResult, balanced_accuracy, evaluating
from medgrape.training.stored_features import FilmInputs, Vectors

NOISE = 0.01  # Noise of repeated vectors, if a concept has fewer films than prototypes
FILMS = 32  # Number of whole films beside each batch of vectors


def starting_points(
    projected: Float[Tensor, "n d"],
    groups: Int[Tensor, " n"],
    count: int,
    prototypes: int,
    anchors: Float[Tensor, "k d"] | None,
    seed: int,
) -> Float[Tensor, "groups m d"]:
    """Initialise each group by k-means; with too few vectors by noisy copies; without any by the text or at random."""
    generator = torch.Generator().manual_seed(seed)
    placed = []
    for group in range(count):
        own = projected[groups == group]
        if len(own) >= prototypes:
            placed.append(_k_means(own, prototypes, seed))
        elif len(own) > 0:
            rows = own[torch.arange(prototypes) % len(own)]
            noise = NOISE * torch.randn(rows.shape, generator=generator)
            noise[: len(own)] = 0.0  # the first copy of each vector is exact
            placed.append(F.normalize(rows + noise, dim=-1))
        elif anchors is not None and group < len(anchors):
            placed.append(perturbed(anchors[group].detach(), prototypes, generator))
        else:
            placed.append(F.normalize(torch.randn(prototypes, projected.shape[1], generator=generator), dim=-1))
    return torch.stack(placed)


def _k_means(own: Float[Tensor, "n d"], prototypes: int, seed: int) -> Float[Tensor, "m d"]:
    from sklearn.cluster import KMeans  # slow to import
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # several threads sum in another order and give other bytes
        clusters = KMeans(prototypes, n_init=1, random_state=seed).fit(own.double().numpy())
    return F.normalize(torch.from_numpy(np.asarray(clusters.cluster_centers_)).float(), dim=-1)


@dataclass(frozen=True)
class WholeFilms:
    """Features of all patches of some films, and their labels."""

    features: Float[Tensor, "b c h w"]
    labels: Float[Tensor, "b k"]


@dataclass(frozen=True)
class VectorBatch:
    """Vectors with their concepts, and films for the detection loss."""

    vectors: Float[Tensor, "n c"]
    groups: Int[Tensor, " n"]
    films: WholeFilms | None = None


class PrototypeTraining(StageTraining):
    """Training of stage 3."""

    name = "prototypes"
    schedule: PrototypeStage

    def __init__(self, model: Grape, vectors: Vectors, inputs: FilmInputs, schedule: PrototypeStage) -> None:
        self.schedule, self._model, self._vectors, films = schedule, model, vectors, inputs.films
        self._seed, self._device = inputs.views.seed, inputs.device
        self._patches, self._labels = inputs.patches, films.labels
        parts = dict(model.named_children())
        self.learner = nn.ModuleDict({name: parts[name] for name in ("projector", "atlas", "anchors") if name in parts})
        self._groups = model.atlas.contrasted.shape[0]
        self._films = films.positions("train")
        self._rarity = losses.film_rarity(films.labels[self._films]).double().numpy()
        self.training, self._validation = (
            np.flatnonzero(np.isin(vectors.films, films.positions(split))).tolist() for split in ("train", "val")
        )
        groups = torch.from_numpy(vectors.groups[self.training].copy())
        self._weights = losses.rarity_weights(groups, self._groups) if schedule.balance else torch.ones(self._groups)

    @torch.no_grad()
    def place(self) -> None:
        """Put the prototypes at their starting points."""
        batch, atlas = self._batch(self.training), self._model.atlas
        projected, groups = self._projected(batch).cpu(), batch.groups.cpu()
        anchors = None if self._model.anchors is None else self._model.anchors().cpu()
        start = starting_points(projected, groups, self._groups, atlas.vectors.shape[1], anchors, self._seed)
        atlas.place(start.to(self._device))

    @torch.no_grad()
    def push(self) -> None:
        """Replace every prototype by the nearest vector of its concept; one without vectors stays as it is."""
        batch = self._batch(self.training)
        projected = self._projected(batch)
        pushed = self._model.atlas.contrasted.clone()
        for group in range(self._groups):
            own = projected[batch.groups == group]
            if len(own):
                pushed[group] = own[(pushed[group] @ own.T).argmax(dim=1)]
        self._model.atlas.place(pushed)

    def batches(self, epoch: int) -> Iterator[VectorBatch]:
        """Yield the vectors of the training films in random order, with films for the detection loss."""
        generator = np.random.default_rng((self._seed, 4, epoch))
        for rows in shuffled(self.training, self.schedule.batch, (0, 1), self._seed, 3, epoch):
            yield replace(self._batch(rows), films=self._random_films(generator))

    def _random_films(self, generator: np.random.Generator) -> WholeFilms | None:
        """Return random training films, those with a rare finding more often; None without the detection loss."""
        if self._patches is None:
            return None
        count = min(FILMS, len(self._films))
        drawn = np.sort(generator.choice(self._films, count, replace=False, p=self._rarity / self._rarity.sum()))
        features = torch.from_numpy(self._patches[drawn]).float()
        return WholeFilms(features.to(self._device), self._labels[drawn].to(self._device))

    def _batch(self, rows: list[int]) -> VectorBatch:
        vectors = torch.from_numpy(self._vectors.vectors[rows]).to(self._device)
        return VectorBatch(vectors, torch.from_numpy(self._vectors.groups[rows]).to(self._device))

    def _projected(self, batch: VectorBatch) -> Float[Tensor, "n d"]:
        with evaluating(self.learner):
            projected: Tensor = self._model.projector(batch.vectors)
        return projected

    def loss(self, learner: nn.Module, batch: VectorBatch) -> Float[Tensor, ""]:
        """Compute the loss of the stage."""
        del learner  # there is one process: the learner has the parts of the model
        return prototype_loss(self._model, batch, self.schedule, self._weights)

    @torch.no_grad()
    def validate(self) -> ValidationResult:
        """Compute how often a validation vector is nearest to its own concept."""
        batch, schedule = self._batch(self._validation), self.schedule
        similarity = losses.soft_similarity(self._projected(batch), self._model.atlas.contrasted, schedule.sharpness)
        weights = self._weights.to(similarity.device)
        loss = losses.contrastive_loss(similarity, batch.groups, schedule.scale, schedule.margin, weights)
        accuracy = balanced_accuracy(similarity.argmax(dim=1), batch.groups)
        return ValidationResult(accuracy, float(loss), "balanced accuracy")


def prototype_loss(
    model: Grape, batch: VectorBatch, schedule: PrototypeStage, weights: Float[Tensor, " groups"]
) -> Float[Tensor, ""]:
    """Compute the weighted sum of the stage's losses, which the end-to-end variant uses too."""
    projected = model.projector(batch.vectors)
    similarity = losses.masked_similarity(projected, model.atlas.contrasted, schedule.sharpness, schedule.mask_above)
    weights = weights.to(similarity.device)
    total = losses.contrastive_loss(similarity, batch.groups, schedule.scale, schedule.margin, weights)
    if schedule.alignment and model.anchors is not None:
        total = total + schedule.alignment * losses.alignment_loss(model.atlas.prototypes, model.anchors())
    if schedule.pointing:
        means = projected @ model.atlas.prototypes.mean(dim=1).T
        total = total + schedule.pointing * losses.pointing_loss(means, batch.groups, weights)
    if batch.films is not None:
        maps = mean_maps(model.projector.patches(batch.films.features), list(model.atlas.prototypes))
        total = total + schedule.detection * losses.detection_loss(maps, batch.films.labels)
    if schedule.dispersion:
        total = total + schedule.dispersion * losses.dispersion_loss(model.atlas.contrasted)
    return total
