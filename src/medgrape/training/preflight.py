"""Checks before the first epoch that a training can be completed."""

from itertools import compress
from operator import attrgetter
from pathlib import Path

from medgrape.baselines.methods import BaselineRun
from medgrape.config import Config
from medgrape.datasets.cache import fingerprint
from medgrape.errors import nearest
from medgrape.plugins import built_in, get
from medgrape.runs.checkpoint import Run
from medgrape.runs.manifest import parts_used
from medgrape.training.films import UNKNOWN_CLASS, TrainingError, TrainingFilms, learnt_contents

_STAGED_ONLY = (  # Settings that have no effect without stages
    "stages.prototypes.background", "stages.concepts.box_weight", "stages.concepts.resample", "stages.prototypes.push",
    "stages.prototypes.detection", "stages.concepts.telling_weight", "stages.concepts.class_weight",
    "stages.vectors.boxes", "model.standardise", "model.mirror",
)  # fmt: skip


def refuse_unusable_folder(out: Path) -> None:
    """Raise if the folder of the run contains anything else."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TrainingError(f"{out} is there already and is no run; choose another --out.")


def refuse_changed_films(out: Path, run: Run | BaselineRun, data: Path) -> None:
    """Raise if the films have changed since a finished run was trained on them."""
    now = {fingerprint(content) for content in learnt_contents(data, run.config) if content}
    refused = run.metrics.get("films_refused", 0)  # the run was not trained on these
    if len(now - set(run.learnt_from)) > refused:
        raise TrainingError(
            f"{out} holds a run that learnt from these films before they were changed; choose another --out."
        )


def refuse_unknown_parts(config: Config) -> None:
    """Raise if no package provides the head. Backbones and encoders may be folders and are checked when opened."""
    if config.model.method == "grape" and config.model.head not in built_in("head"):
        get("head", config.model.head)
    parts_used(config)


def refuse_unlearnable(config: Config, films: TrainingFilms) -> None:
    """Raise if the settings do not fit the films and labels."""
    _check_films(films)
    refuse_settings(config)
    if config.model.method == "grape":
        _check_names(config, films)
        _check_maps(config, films)


def refuse_settings(config: Config) -> None:
    """Raise if settings contradict each other, whatever the films."""
    if config.model.method == "grape":
        _check_stages(config)
        return
    stage = config.stages.concepts
    views = stage.views if config.backbone.frozen_parts else 0
    if config.model.method == "pip-net" and (not stage.augment or 0 < views < 3):
        raise TrainingError(
            'model.method = "pip-net" compares two views of a film beside the film itself: set stages.concepts.augment '
            "= true, and stages.concepts.views to 3 or more, or to 0."
        )


def _check_films(films: TrainingFilms) -> None:
    name = films.dataset.name
    if not len(films.dataset.concepts):
        raise TrainingError(f"{name!r} names no concepts; add at least one to its dataset.toml.")
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
    """Maps that are not trained must be initialised from an earlier run."""
    stage = config.stages.concepts
    if stage.epochs or config.training.order == "end-to-end":
        return
    for name in compress(films.dataset.concepts.names, (films.labels == 1).any(dim=0).tolist()):
        if name not in stage.like:
            raise TrainingError(
                f"With stages.concepts.epochs = 0 the map of {name!r} is not trained; name a finding of an earlier run "
                "for it in stages.concepts.like, or train the stage."
            )


def _check_stages(config: Config) -> None:
    stages = config.stages
    views = stages.concepts.views if config.backbone.frozen_parts and stages.concepts.augment else 0
    if 0 < views < stages.head.views:
        raise TrainingError("stages.head.views is more than stages.concepts.views, the number of cached views.")
    if stages.prototypes.pointing and not stages.prototypes.background:
        raise TrainingError("stages.prototypes.pointing compares findings with normal tissue; set background = true.")
    if config.training.order != "end-to-end":
        return
    for key in _STAGED_ONLY:
        if attrgetter(key)(config):
            raise TrainingError(f'{key} needs stages; leave it out, or set training.order = "staged".')


def untrained(films: TrainingFilms) -> tuple[str, ...]:
    """Return the concepts that no training film shows."""
    shown = (films.labels[films.positions("train")] == 1).any(dim=0).tolist()
    return tuple(compress(films.dataset.concepts.names, (not any_film for any_film in shown)))
