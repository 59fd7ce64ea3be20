"""Features of every patch of every film, kept on disk (in half precision) for stages 2 and 3."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.config import Config
from medgrape.datasets.augment import Lots
from medgrape.files import ArrayWriter, mapped, whole_folder
from medgrape.model.backbones import Backbone
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.training.barrier import Meeting
from medgrape.training.films import Targets, TrainingFilms, in_order

BATCH = 64


@dataclass(frozen=True)
class Views:
    """Which view of which film: number 0 is the film itself, each other number one augmented view."""

    seed: int
    augment: bool
    mirror: bool = False
    paired: bool = False
    """Views 1 and 2, 3 and 4, ... lie alike and differ in their greys, so that their patches can be compared."""

    def lots(self, positions: Sequence[int], number: int) -> Lots | None:
        """What chance makes of each film, or None for the films themselves."""
        if number == 0 or not self.augment:
            return None
        move = (number + 1) // 2 if self.paired else number
        greys = number % 2 if self.paired else 0
        return Lots([(self.seed, move, position) for position in positions], self.mirror, greys)

    @classmethod
    def of(cls, config: Config) -> "Views":
        """As the settings of stage 1 say."""
        stage = config.stages.concepts
        return cls(config.seed, stage.augment, stage.mirror, paired=config.model.method == "pip-net")


@dataclass(frozen=True)
class Inputs:
    """What the part of the backbone that learns is fed with: films on their way, or what lies on disk."""

    films: TrainingFilms
    backbone: Backbone
    views: Views
    grid: tuple[int, int]
    device: torch.device
    kept: np.ndarray | None = None
    """(view, film, channels, height, width), where parts are frozen."""
    patches: np.ndarray | None = None
    """What the whole backbone makes of the films themselves, where that is kept: (film, features, height, width)."""

    def activations(self, positions: Sequence[int], number: int) -> Float[Tensor, "b c h w"]:
        """Of one view of those films. Without a disk copy every number is another view; with one, they come again."""
        if self.kept is not None:
            stack = np.stack([self.kept[self._number(number), position] for position in positions])
            # laid out as ``early`` does
            return torch.from_numpy(stack).to(self.device).contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            return self.backbone.early(self._seen(positions, number))

    def features(self, model: Grape, positions: Sequence[int], number: int) -> Float[Tensor, "b c h w"]:
        """What ``model``, whose backbone this is, makes of the same view when it reads films."""
        if self.patches is not None and self._number(number) == 0:
            return torch.from_numpy(self.patches[list(positions)]).float().to(self.device)
        if not model.mirror:
            return model.backbone.late(self.activations(positions, number))
        return model.features(self._seen(positions, self._number(number)))  # no copy on disk has mirror images

    def pair(self, epoch: int) -> tuple[int, int]:
        """Two views to be compared in that epoch; kept ones come again."""
        turn = epoch - 1 if self.kept is None else (epoch - 1) % ((len(self.kept) - 1) // 2)
        return 2 * turn + 1, 2 * turn + 2

    def targets(self, positions: Sequence[int], number: int) -> Targets:
        """What is known about the same view of the same films."""
        lots = self.views.lots(positions, self._number(number))
        return self.films.targets(positions, self.grid, lots).to(self.device)

    def _number(self, number: int) -> int:
        """Of the view: those that are kept come again."""
        return number if self.kept is None else number % len(self.kept)

    def _seen(self, positions: Sequence[int], number: int) -> Float[Tensor, "b 1 side side"]:
        return self.films.seen(positions, self.views.lots(positions, number)).to(self.device)


def open_inputs(inputs: Inputs, views: int, folder: Path, track: Track) -> Inputs:
    """The same inputs from disk, if the first parts of the backbone are frozen; written there when they are not yet.

    No views: nothing is kept, and every epoch has views of its own.
    """
    if not _keeps(inputs, views):
        return inputs
    views = views if inputs.views.augment else 1
    if not folder.is_dir():
        with whole_folder(folder) as draft:
            _write_views(inputs, views, draft, track)
    flat = mapped(folder / "early.npy")
    kept = flat.reshape(-1, len(inputs.films), *flat.shape[1:])
    return replace(inputs, kept=kept)


def open_shared(inputs: Inputs, views: int, folder: Path, track: Track, meeting: Meeting, *, writes: bool) -> Inputs:
    """The same for several processes, of which one writes; the others wait for it."""
    if writes:
        inputs = open_inputs(inputs, views, folder, track)
    meeting.wait()
    if writes or not _keeps(inputs, views):
        return inputs
    meeting.expect(folder.is_dir, folder)
    return open_inputs(inputs, views, folder, track)


def _keeps(inputs: Inputs, views: int) -> bool:
    return inputs.backbone.frozen_parts > 0 and views > 0


def _write_views(inputs: Inputs, views: int, draft: Path, track: Track) -> None:
    everyone = range(len(inputs.films))
    shape = inputs.activations([0], 0).shape[1:]
    jobs = [(number, positions) for number in range(views) for positions in in_order(everyone, BATCH)]
    with ArrayWriter(draft / "early.npy", tuple(shape)) as out:
        for number, positions in track(jobs, f"first parts of the backbone, {views} views", len(jobs)):
            out.append(inputs.activations(positions, number).cpu().numpy())


Patches = Float[np.ndarray, "n c h w"]
"""Memory-mapped; films in the order of ``TrainingFilms``."""


def open_patches(model: Grape, inputs: Inputs, folder: Path, track: Track) -> Patches:
    """The features of all films, from disk; written there by one pass of the model when they are not yet."""
    if not folder.is_dir():
        with whole_folder(folder) as draft, torch.no_grad():
            _write_patches(model.eval(), inputs, draft / "patches.npy", track)
    return mapped(folder / "patches.npy")


def _write_patches(model: Grape, inputs: Inputs, path: Path, track: Track) -> None:
    batches = list(in_order(range(len(inputs.films)), BATCH))
    with ArrayWriter(path, (model.backbone.features, *inputs.grid), np.float16) as out:
        for positions in track(batches, "features of every patch", len(batches)):
            out.append(inputs.features(model, positions, 0).cpu().numpy())
