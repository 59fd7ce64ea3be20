"""From a prepared data set to a run: all stages in order, going on where an earlier attempt was broken off."""

import json
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from medgrape.config import Config
from medgrape.data.cache import FilmCache
from medgrape.data.dataset import Dataset, checksum
from medgrape.data.files import whole_file, whole_folder
from medgrape.model.checkpoint import Run, load_run
from medgrape.model.manifest import MANIFEST
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.training.course import Course, Graduate
from medgrape.training.films import TrainingError, TrainingFilms
from medgrape.training.journal import Journal
from medgrape.training.keepsakes import exemplar_films, usual_scores
from medgrape.training.loop import Workshop
from medgrape.training.processes import launch


@dataclass(frozen=True)
class Order:
    """What is to be trained, on what, and where it goes."""

    config: Config
    data: Path
    out: Path

    @property
    def work(self) -> Path:
        """Where the training happens, beside the run that it becomes."""
        out = self.out.resolve()
        return out.with_name(f".{out.name}.training")

    def told(self) -> dict[str, Any]:
        """What must be the same for a training to be gone on with."""
        return {
            "config": self.config.model_dump(mode="json"),
            "dataset": checksum(self.data),
            "versions": {name: version(name) for name in ("medgrape", "torch")},
        }


def train(order: Order, *, track: Track = quietly, watch: Watch = unwatched) -> Path:
    """Train, or go on training, and leave a sealed run in ``order.out``."""
    if (order.out / MANIFEST).is_file():
        return _already(order)
    order.work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(order.work.with_suffix(".lock"), timeout=0):
            _agree(order)
            launch(order.config.training, _work, order, track, watch)
            shutil.rmtree(order.work)
    except Timeout:
        raise TrainingError(f"Another process is training {order.out} at this moment; wait for it.") from None
    return order.out


def _already(order: Order) -> Path:
    """A run that is there: the same one is fine, another one is not overwritten."""
    loaded = load_run(order.out)
    same = loaded.run.config == order.config and loaded.manifest.dataset["checksum"] == checksum(order.data)
    if not same:
        raise TrainingError(
            f"{order.out} holds a run with other settings or of another data set; choose another --out."
        )
    return order.out


def _agree(order: Order) -> None:
    """A training that was begun with other settings, data or versions cannot end as one."""
    for left_over in order.work.glob(".*.part"):  # of an attempt that was killed
        shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()
    plan, told = order.work / "plan.json", order.told()
    if not plan.is_file():
        with whole_file(plan) as draft:
            draft.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
        return
    begun = json.loads(plan.read_text("utf-8"))
    for key, what in (("config", "settings"), ("dataset", "films or labels"), ("versions", "versions of the software")):
        if begun.get(key) != json.loads(json.dumps(told[key])):
            raise TrainingError(
                f"A training of {order.out} was begun with other {what}; choose another --out, or remove {order.work}."
            )


def _work(fabric: Any, order: Order, track: Track, watch: Watch) -> None:  # noqa: ANN401 (Lightning's)
    """What each process does; after the backbone has learnt, only the first goes on."""
    dataset = Dataset.load(order.data)
    _refuse_unlearnable(dataset)
    paths = [dataset.film_path(film) for film in dataset.pictured]
    cached = FilmCache(order.data / "cache", order.config).films(paths, track=track)
    films = TrainingFilms.of(dataset, cached, "train", "val")
    leads = fabric.is_global_zero
    workshop = Workshop(fabric, order.work, order.config.seed, Journal(order.work), watch if leads else unwatched)
    try:
        graduate = Course(order.config, films, workshop, track if leads else quietly).run()
    finally:
        workshop.journal.close()
    if graduate is not None:
        _assemble(order, graduate, films, len(cached.refused))


def _refuse_unlearnable(dataset: Dataset) -> None:
    for split, what in (("train", "to learn from"), ("val", "to choose the model by")):
        if not any(film.path for film in dataset.in_split(split)):
            raise TrainingError(f"{dataset.name!r} has no films {what} (split {split!r}); prepare it again.")
    if not len(dataset.concepts):
        raise TrainingError(f"{dataset.name!r} names no concepts; there is nothing to point at.")


def _assemble(order: Order, graduate: Graduate, films: TrainingFilms, refused: int) -> None:
    """Everything that reading needs, written beside and moved into place at once."""
    metrics = graduate.metrics | {"films_refused": refused, "films": len(films)}
    run = Run(
        order.config,
        films.dataset.concepts,
        films.dataset.classes,
        graduate.model,
        usual_scores(graduate.scores, films),
        exemplar_films(graduate.scores, films, graduate.grid, show=order.config.exemplars.show),
        metrics,
    )
    with whole_folder(order.out) as draft:
        for name in ("log.jsonl", "curves.png"):
            shutil.copy(order.work / name, draft / name)
        shutil.copytree(order.work / "tensorboard", draft / "tensorboard")
        run.save(draft, {"name": films.dataset.name, "checksum": checksum(order.data)})


def resumable(order: Order) -> bool:
    """Whether an earlier attempt left something to go on with."""
    return (order.work / "plan.json").is_file()
