"""From a prepared data set to a run: all stages in order, going on where an earlier attempt was broken off."""

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout
from lightning_fabric import Fabric

from medgrape.config import Config
from medgrape.data.cache import CachedFilms, FilmCache
from medgrape.data.dataset import Dataset, checksum
from medgrape.data.files import copied, whole_file, whole_folder
from medgrape.feedback.calibration import NOT_CALIBRATED, learn_safety
from medgrape.feedback.thresholds import CalibrationError
from medgrape.model.checkpoint import KEEPSAKES, Run, load_run
from medgrape.model.manifest import MANIFEST
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.training.course import Course, Graduate
from medgrape.training.films import TrainingError, TrainingFilms
from medgrape.training.fitness import refuse_unlearnable, refuse_unusable_place
from medgrape.training.journal import Journal
from medgrape.training.keepsakes import exemplar_films, usual_scores
from medgrape.training.loop import Workshop
from medgrape.training.plan import agree
from medgrape.training.processes import launch

FIRST_STAGE = "concepts.safetensors"
SEEN_BY_FIRST_STAGE = ("seed", "preprocessing", "backbone", "text", "training")
"""Tables of the settings that the first stage depends on beside its own; loading a text encoder may draw numbers."""


@dataclass(frozen=True)
class Order:
    """What is to be trained, on what, and where it goes."""

    config: Config
    data: Path
    out: Path
    kept: Path | None = None
    """A folder of finished first stages: trainings that differ in later stages alone learn the first one once."""

    @property
    def work(self) -> Path:
        """Where the training happens, beside the run that it becomes."""
        out = self.out.resolve()
        return out.with_name(f".{out.name}.training")


def train(order: Order, *, track: Track = quietly, watch: Watch = unwatched) -> Path:
    """Train, or go on training, and leave a sealed run in ``order.out``."""
    if (order.out / MANIFEST).is_file():
        return _already(order)
    refuse_unusable_place(order.out)
    Dataset.load(order.data)
    launch(order.config.training, _work, order, track, watch)
    return order.out


def resumable(order: Order) -> bool:
    """Whether an earlier attempt left something to go on with."""
    return (order.work / "plan.json").is_file()


def _already(order: Order) -> Path:
    """A run that is there: the same one is fine, another one is not overwritten."""
    loaded = load_run(order.out)
    same = loaded.run.config == order.config and loaded.manifest.dataset["checksum"] == checksum(order.data)
    if not same:
        raise TrainingError(
            f"{order.out} holds a run with other settings or of another data set; choose another --out."
        )
    shutil.rmtree(order.work, ignore_errors=True)  # of an attempt that was killed at its very end
    return order.out


def _work(fabric: Fabric, order: Order, track: Track, watch: Watch) -> None:
    """What each process does; the first one alone writes, and alone goes on after the backbone has learnt."""
    leads = fabric.is_global_zero
    if not leads:
        fabric.barrier()  # until the first process holds the lock and knows what is gone on with
        _learn(fabric, order, track=quietly, watch=unwatched)
        return
    order.work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(order.work.with_suffix(".lock"), timeout=0):
            _clean(order)
            cached = _films(order, track)
            agree(order.work, order.config, order.data, cached)
            _fetch_first_stage(order)
            fabric.barrier()
            _learn(fabric, order, track=track, watch=watch)
            _keep_first_stage(order)
            shutil.rmtree(order.work)
    except Timeout:
        raise TrainingError(f"Another process is training {order.out} at this moment; wait for it.") from None


def _clean(order: Order) -> None:
    """Drafts of attempts that were killed."""
    out = order.out.resolve()
    for left_over in (*order.work.glob(".*.part"), *out.parent.glob(f".{out.name}.*.part")):
        shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()


def _fetch_first_stage(order: Order) -> None:
    """Take the first stage from another training that could not have learnt it otherwise."""
    kept, own = _kept_first_stage(order), order.work / FIRST_STAGE
    if kept is not None and kept.is_file() and not own.is_file():
        with whole_file(own) as draft:
            copied(kept, draft)


def _keep_first_stage(order: Order) -> None:
    kept, own = _kept_first_stage(order), order.work / FIRST_STAGE
    if kept is not None and own.is_file() and not kept.is_file():  # end to end, or without epochs, there is none
        with whole_file(kept) as draft:
            copied(own, draft)


def _kept_first_stage(order: Order) -> Path | None:
    """Where a first stage is kept that was begun with the same: films, labels, weights, versions and settings."""
    if order.kept is None:
        return None
    begun = json.loads((order.work / "plan.json").read_text("utf-8"))
    settings = begun.pop("config")
    begun |= {name: settings[name] for name in SEEN_BY_FIRST_STAGE} | {"stage": settings["stages"]["concepts"]}
    key = hashlib.sha256(json.dumps(begun, sort_keys=True).encode()).hexdigest()
    return order.kept / key / FIRST_STAGE


def _films(order: Order, track: Track) -> CachedFilms:
    dataset = Dataset.load(order.data)
    paths = [dataset.film_path(film) for film in dataset.pictured]
    return FilmCache(order.data / "cache", order.config).films(paths, track=track)


def _learn(fabric: Fabric, order: Order, *, track: Track, watch: Watch) -> None:
    films = TrainingFilms.of(Dataset.load(order.data), _films(order, quietly), "train", "val")
    refuse_unlearnable(order.config, films)
    workshop = Workshop(fabric, order.work, order.config.seed, Journal(order.work), watch)
    try:
        graduate = Course(order.config, films, workshop, track).run()
    finally:
        workshop.journal.close()
    if graduate is not None:
        _assemble(order, graduate, films, track)


def _calibrated(run: Run, order: Order, track: Track) -> Run:
    """With thresholds for the safety check, where the settings ask for them; or with the reason why there are none."""
    asked = order.config.safety.calibrate
    if asked == "none":
        return run
    try:
        return replace(run, safety=learn_safety(run, order.data, balanced=asked == "balanced", track=track))
    except CalibrationError as refusal:
        return replace(run, metrics=run.metrics | {NOT_CALIBRATED: str(refusal)})


def _assemble(order: Order, graduate: Graduate, films: TrainingFilms, track: Track) -> None:
    """Everything that reading needs, written beside and moved into place at once."""
    run = Run(
        order.config,
        films.dataset.concepts,
        films.dataset.classes,
        graduate.model,
        usual_scores(graduate.scores, films),
        exemplar_films(graduate.scores, films, graduate.grid, show=order.config.exemplars.show),
        graduate.metrics | {"films": len(films), "films_refused": films.refused},
        films.fingerprints,
    )
    run = _calibrated(run, order, track)
    with whole_folder(order.out) as draft:
        for name in KEEPSAKES:
            copied(order.work / name, draft / name)
        run.save(draft, {"name": films.dataset.name, "checksum": checksum(order.data)})
