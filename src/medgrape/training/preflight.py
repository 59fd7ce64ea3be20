"""Whether a training can come to its end, asked before its first epoch: an error after hours costs hours."""

from pathlib import Path

import torch

from medgrape.baselines.methods import BaselineRun
from medgrape.config import Config
from medgrape.datasets.cache import fingerprint
from medgrape.errors import nearest
from medgrape.plugins import built_in, get
from medgrape.runs.checkpoint import Run
from medgrape.runs.manifest import parts_used
from medgrape.training.films import UNKNOWN_CLASS, TrainingError, TrainingFilms, learnt_contents


def refuse_unusable_place(out: Path) -> None:
    """A folder with something else in it is not written over."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TrainingError(f"{out} is there already and is no run; choose another --out.")


def refuse_changed_films(out: Path, run: Run | BaselineRun, data: Path) -> None:
    """A finished run is this training's only if the films that are there are those that it learnt from."""
    now = {fingerprint(content) for content in learnt_contents(data, run.config) if content}
    unread = run.metrics.get("films_refused", 0)  # taught it nothing, and so are not among those
    if len(now - set(run.learnt_from)) > unread:
        raise TrainingError(
            f"{out} holds a run that learnt from these films before they were changed; choose another --out."
        )


def refuse_unknown_parts(config: Config) -> None:
    """A head that nobody has; backbones and encoders may also be folders, and are looked for where they are opened."""
    if config.model.method == "grape" and config.model.head not in built_in("head"):
        get("head", config.model.head)
    parts_used(config)


def refuse_unlearnable(config: Config, films: TrainingFilms) -> None:
    """Films, labels and settings that do not go together."""
    _check_films(films)
    refuse_settings(config)
    if config.model.method == "grape":
        _check_names(config, films)
        _check_maps(config, films)


def refuse_settings(config: Config) -> None:
    """Settings that do not go together, whatever the films."""
    if config.model.method == "grape":
        _check_settings(config)
    else:
        _check_views(config)


def _check_films(films: TrainingFilms) -> None:
    name = films.dataset.name
    if not len(films.dataset.concepts):
        raise TrainingError(f"{name!r} names no concepts; there is nothing to point at.")
    for split, what in (("train", "to learn from"), ("val", "to choose the model by")):
        positions = films.positions(split)
        if not positions:
            raise TrainingError(f"{name!r} has no readable films {what} (split {split!r}); see medgrape data check.")
        if not (films.classes[positions] != UNKNOWN_CLASS).any():
            raise TrainingError(f"{name!r} has no film {what} whose class is known (split {split!r}).")
        if not (films.labels[positions] == 1).any():
            raise TrainingError(f"{name!r} has no film {what} that shows any concept (split {split!r}).")


def _check_names(config: Config, films: TrainingFilms) -> None:
    classes = films.dataset.classes
    for name in config.stages.vectors.normal:
        if name not in classes:
            raise TrainingError(f"stages.vectors.normal: the data set has no class {name!r}{nearest(name, classes)}.")
    known = {key for film in films.dataset.films for key in (film.id, film.patient)}
    for name in config.exemplars.withheld:
        if name not in known:
            raise TrainingError(f"exemplars.withheld: there is no film or patient {name!r}{nearest(name, known)}.")


def _check_maps(config: Config, films: TrainingFilms) -> None:
    stage = config.stages.concepts
    if stage.epochs or config.training.order == "end-to-end":
        return
    for name, shown in zip(films.dataset.concepts.names, (films.labels == 1).any(dim=0).tolist(), strict=True):
        if shown and name not in stage.like:
            raise TrainingError(
                f"stages.concepts.epochs = 0 leaves maps as they begin, and nothing says how that of {name!r} begins; "
                "say so in stages.concepts.like, or let the stage learn."
            )


def _check_views(config: Config) -> None:
    """PIP-Net compares views of a film that lie alike and differ in their greys."""
    stage = config.stages.concepts
    kept = stage.views if config.backbone.frozen_parts else 0
    if config.model.method == "pip-net" and (not stage.augment or 0 < kept < 3):
        raise TrainingError(
            'model.method = "pip-net" compares two views of a film beside the film itself: set stages.concepts.augment '
            "= true, and stages.concepts.views to 3 or more, or to 0."
        )


def _check_settings(config: Config) -> None:
    stages = config.stages
    kept = stages.concepts.views if config.backbone.frozen_parts and stages.concepts.augment else 0
    if 0 < kept < stages.head.views:
        raise TrainingError("stages.head.views is more than stages.concepts.views; frozen parts have seen no others.")
    if stages.prototypes.pointing and not stages.prototypes.background:
        raise TrainingError("stages.prototypes.pointing compares findings with ordinary tissue; set background = true.")
    if config.training.order != "end-to-end":
        return
    staged_only = {
        "stages.prototypes.background": stages.prototypes.background,
        "stages.concepts.box_weight": stages.concepts.box_weight,
        "stages.concepts.resample": stages.concepts.resample,
        "stages.prototypes.push": stages.prototypes.push,
        "stages.prototypes.detection": stages.prototypes.detection,
        "stages.concepts.telling_weight": stages.concepts.telling_weight,
        "stages.concepts.class_weight": stages.concepts.class_weight,
        "stages.vectors.boxes": stages.vectors.boxes,
        "model.standardise": config.model.standardise,
        "model.mirror": config.model.mirror,
    }
    for key, given in staged_only.items():
        if given:
            raise TrainingError(f'{key} needs stages; leave it out, or set training.order = "staged".')


def untrained(films: TrainingFilms) -> tuple[str, ...]:
    """Concepts that no training film shows."""
    shown = torch.nan_to_num(films.labels[films.positions("train")]).sum(dim=0)
    return tuple(name for name, count in zip(films.dataset.concepts.names, shown.tolist(), strict=True) if not count)
