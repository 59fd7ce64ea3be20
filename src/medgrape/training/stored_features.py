"""Features cached on disk: output of the frozen parts, patches, and the concept vectors of stage 2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.config import Config, VectorStage
from medgrape.datasets.augment import RandomViews
from medgrape.datasets.cache import in_order
from medgrape.files import ArrayWriter, mapped, whole_folder
from medgrape.geometry import PatchGrid
from medgrape.model.backbones import Backbone
from medgrape.model.cam import concept_vectors
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.training.films import Targets, TrainingFilms
from medgrape.training.losses import MOSTLY

BATCH = 64
CAM_SHARE = 0.5  # A patch without box above this fraction of the CAM's peak may belong to the finding
Patches = Float[np.ndarray, "n c h w"]  # Features of all patches, memory-mapped, in the order of `TrainingFilms`


@dataclass(frozen=True)
class Views:
    """Augmented views of films: view 0 is the film itself, each other number is one augmented view."""

    seed: int
    augment: bool
    mirror: bool = False
    paired: bool = False  # Views 1 and 2, 3 and 4, ... have the same position and different grey levels

    def random(self, positions: Sequence[int], number: int) -> RandomViews | None:
        """Return the random augmentation of each film; None for the films themselves."""
        if number == 0 or not self.augment:
            return None
        move = (number + 1) // 2 if self.paired else number
        greys = number % 2 if self.paired else 0
        return RandomViews([(self.seed, move, position) for position in positions], self.mirror, greys)


@dataclass(frozen=True)
class FilmInputs:
    """Inputs of the trained parts: computed from films, or read from the cache on disk."""

    films: TrainingFilms
    backbone: Backbone
    views: Views
    grid: tuple[int, int]
    device: torch.device
    cached: Float[np.ndarray, "views n c1 h1 w1"] | None = None  # Output of the frozen parts for each cached view
    patches: Patches | None = None  # Features of the films themselves, if they are cached

    @classmethod
    def of(cls, config: Config, films: TrainingFilms, backbone: Backbone, device: torch.device) -> "FilmInputs":
        """Create them without cache; the backbone is still on the CPU."""
        stage, paired = config.stages.concepts, config.model.method == "pip-net"
        views = Views(config.seed, stage.augment, stage.mirror, paired)
        return cls(films, backbone, views, backbone.grid(config.preprocessing.size), device)

    def activations(self, positions: Sequence[int], number: int) -> Float[Tensor, "b c h w"]:
        """Return the output of the frozen parts for a view of films. With a cache, its views repeat."""
        if self.cached is not None:
            stack = np.stack([self.cached[self._view(number), position] for position in positions])
            # the memory format of ``forward_frozen``
            return torch.from_numpy(stack).to(self.device).contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            return self.backbone.forward_frozen(self._augmented(positions, number))

    def features(self, model: Grape, positions: Sequence[int], number: int) -> Float[Tensor, "b c h w"]:
        """Return the features of the same view, as ``model`` (which has this backbone) computes them when it reads."""
        if self.patches is not None and self._view(number) == 0:
            return torch.from_numpy(self.patches[list(positions)]).float().to(self.device)
        if not model.mirror:
            return model.backbone.forward_trainable(self.activations(positions, number))
        return model.features(self._augmented(positions, self._view(number)))  # mirror images are not cached

    def pair(self, epoch: int) -> tuple[int, int]:
        """Return the two paired views of an epoch; cached ones repeat."""
        turn = epoch - 1 if self.cached is None else (epoch - 1) % ((len(self.cached) - 1) // 2)
        return 2 * turn + 1, 2 * turn + 2

    def targets(self, positions: Sequence[int], number: int) -> Targets:
        """Return the targets of the same view of the same films."""
        views = self.views.random(positions, self._view(number))
        return self.films.targets(positions, self.grid, views).to(self.device)

    def _view(self, number: int) -> int:
        return number if self.cached is None else number % len(self.cached)

    def _augmented(self, positions: Sequence[int], number: int) -> Float[Tensor, "b 1 side side"]:
        return self.films.augmented(positions, self.views.random(positions, number)).to(self.device)

    def jobs(self, views: int) -> list[tuple[int, list[int]]]:
        """Return all batches of all films for each view in turn."""
        films = range(len(self.films))
        return [(number, positions) for number in range(views) for positions in in_order(films, BATCH)]


def open_inputs(inputs: FilmInputs, views: int, folder: Path, track: Track) -> FilmInputs:
    """Open the cache of the frozen parts' output, and create it if needed.

    Without frozen parts or without views nothing is cached, and every epoch has its own views.
    """
    if not (inputs.backbone.frozen_parts > 0 and views > 0):
        return inputs
    views = views if inputs.views.augment else 1
    if not folder.is_dir():
        with whole_folder(folder) as draft:
            shape = tuple(inputs.activations([0], 0).shape[1:])
            jobs = inputs.jobs(views)
            with ArrayWriter(draft / "early.npy", shape) as out:
                for number, positions in track(jobs, f"first parts of the backbone, {views} views", len(jobs)):
                    out.append(inputs.activations(positions, number).cpu().numpy())
    flat = mapped(folder / "early.npy")
    return replace(inputs, cached=flat.reshape(-1, len(inputs.films), *flat.shape[1:]))


def open_patches(model: Grape, inputs: FilmInputs, folder: Path, track: Track) -> Patches:
    """Open the cached features of all films, in half precision; compute them if needed."""
    if not folder.is_dir():
        with whole_folder(folder) as draft, torch.no_grad():
            model.eval()
            jobs = inputs.jobs(1)
            with ArrayWriter(draft / "patches.npy", (model.backbone.features, *inputs.grid), np.float16) as out:
                for _, positions in track(jobs, "features of every patch", len(jobs)):
                    out.append(inputs.features(model, positions, 0).cpu().numpy())
    return mapped(folder / "patches.npy")


@dataclass(frozen=True)
class Vectors:
    """The vectors of stage 2, memory-mapped."""

    vectors: Float[np.ndarray, "n c"]
    groups: Int[np.ndarray, " n"]  # Concept of each vector; K is normal tissue
    films: Int[np.ndarray, " n"]  # Position of the film in `TrainingFilms`


def open_vectors(
    model: Grape, inputs: FilmInputs, settings: VectorStage, folder: Path, track: Track, *, background: bool
) -> Vectors:
    """Open the cached vectors of all films; compute them if needed."""
    if not folder.is_dir():
        groups, films = [], []
        with whole_folder(folder) as draft, torch.no_grad():
            with ArrayWriter(draft / "vectors.npy", (model.backbone.features,)) as out:
                for film, group, vector in _VectorPass(model, inputs, settings, background).rows(track):
                    out.append(vector.numpy()[None])
                    groups.append(group)
                    films.append(film)
            np.save(draft / "groups.npy", np.array(groups, dtype=np.int64))
            np.save(draft / "films.npy", np.array(films, dtype=np.int64))
    return Vectors(*(mapped(folder / f"{name}.npy") for name in ("vectors", "groups", "films")))


@dataclass(frozen=True)
class _VectorPass:
    """One pass of the model over all films."""

    model: Grape
    inputs: FilmInputs
    settings: VectorStage
    background: bool

    def rows(self, track: Track) -> Iterator[tuple[int, int, Float[Tensor, " c"]]]:
        """Yield the film, the group and the vector of each row."""
        self.model.eval()
        jobs = self.inputs.jobs(1)
        for _, positions in track(jobs, "stage vectors", len(jobs)):
            features = self.inputs.features(self.model, positions, 0)
            logits = self.model.cam(features)
            vectors = concept_vectors(features, logits).cpu()
            for row, film in enumerate(positions):
                for group, vector in self._of_film(features[row].cpu(), logits[row].cpu(), vectors[row], film):
                    yield film, group, vector

    def _of_film(
        self, features: Float[Tensor, "c h w"], logits: Float[Tensor, "k h w"], vectors: Float[Tensor, "k c"], film: int
    ) -> Iterator[tuple[int, Float[Tensor, " c"]]]:
        films, normal = self.inputs.films, self.settings.normal
        labels, boxes = films.labels[film], self._boxes(film) if self.settings.boxes else {}
        patches = rearrange(features, "c h w -> (h w) c")
        shown = torch.nonzero(labels == 1).flatten().tolist()
        for concept in shown:
            for number, overlap in enumerate(boxes.get(concept, [])):
                yield concept, _vector_in_box(features, logits[concept], overlap)
                chosen = self._random_in_box(overlap, (film, concept, number))
                yield from ((concept, patches[patch]) for patch in chosen)
            if concept not in boxes:
                yield concept, vectors[concept]
                yield from ((concept, patches[patch]) for patch in self._highest(logits[concept]))
        # normal tissue: of normal films, and beside the findings of others, but not of films with other diseases
        if self.background and (not normal or films.records[film].class_name in normal or shown):
            chosen = self._normal_tissue(logits, labels, boxes, film)
            yield from ((len(labels), patches[patch]) for patch in chosen)

    def _random_in_box(self, overlap: Float[Tensor, "h w"], seed: tuple[int, ...]) -> list[int]:
        covered = torch.nonzero(overlap.flatten() > MOSTLY).flatten().tolist()
        chosen = np.random.default_rng(seed).permutation(len(covered))[: self.settings.inside]
        return [covered[index] for index in sorted(chosen.tolist())]

    def _highest(self, logits: Float[Tensor, "h w"]) -> list[int]:
        """Return the patches whose neighbourhood has the highest CAM; a single high patch may be noise."""
        around = F.avg_pool2d(logits[None], kernel_size=3, stride=1, padding=1, count_include_pad=False).flatten()
        highest: list[int] = around.topk(min(self.settings.inside, len(around))).indices.tolist()
        return highest

    def _boxes(self, film: int) -> dict[int, list[Float[Tensor, "h w"]]]:
        """Return the fraction of each patch that each box covers, by concept."""
        films, record = self.inputs.films, self.inputs.films.records[film]
        grid = PatchGrid(record.size, *self.inputs.grid)
        boxes: dict[int, list[Tensor]] = {}
        for drawn in films.dataset.boxes_by_film.get(record.id, ()):
            overlap = torch.from_numpy(grid.overlap(drawn.box)).float()
            boxes.setdefault(films.dataset.concepts.index(drawn.concept), []).append(overlap)
        return boxes

    def _normal_tissue(
        self,
        logits: Float[Tensor, "k h w"],
        labels: Float[Tensor, " k"],
        boxes: dict[int, list[Float[Tensor, "h w"]]],
        film: int,
    ) -> list[int]:
        """Return patches without finding: outside every box, and with a low CAM of the findings without boxes."""
        free = torch.ones_like(logits[0], dtype=torch.bool)
        for overlap in chain.from_iterable(boxes.values()):
            free &= overlap == 0
        for concept in range(len(labels)):
            if concept not in boxes and labels[concept] != 0:
                cam = torch.sigmoid(logits[concept])
                free &= cam < CAM_SHARE * cam.max()
        patches = torch.nonzero(free.flatten()).flatten()
        if len(patches) == 0:
            return []
        hardest = patches[logits.amax(dim=0).flatten()[patches].argsort(descending=True, stable=True)]
        hard = self.settings.ordinary // 2
        others = min(self.settings.ordinary - hard, len(patches))
        chosen = np.random.default_rng((film, len(patches))).choice(len(patches), others, replace=False)
        return [*hardest[:hard].tolist(), *patches[torch.from_numpy(np.sort(chosen))].tolist()]


def _vector_in_box(
    features: Float[Tensor, "c h w"], logits: Float[Tensor, "h w"], overlap: Float[Tensor, "h w"]
) -> Float[Tensor, " c"]:
    """Return the mean of the features inside a box, weighted by the CAM; a box smaller than a patch counts as well."""
    weights = overlap * torch.exp(logits - logits.max())
    if float(weights.sum()) <= 0.0:  # the box is outside the film, or the CAM is zero there
        weights = overlap if float(overlap.sum()) > 0.0 else torch.softmax(logits.flatten(), 0).view_as(logits)
    return torch.einsum("chw,hw->c", features, weights / weights.sum())
