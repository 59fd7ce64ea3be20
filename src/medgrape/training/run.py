"""From a prepared data set to a run: all stages in order, going on where an earlier attempt was broken off."""

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from lightning_fabric import Fabric

from medgrape.baselines.methods import BaselineRun, load_any
from medgrape.config import Config
from medgrape.datasets.cache import CachedFilms, FilmCache
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.files import copied, sha256, whole_file, whole_folder
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.runs.checkpoint import KEEPSAKES, Run
from medgrape.runs.manifest import MANIFEST, parts_used
from medgrape.safety.calibration import NOT_CALIBRATED, learn_safety
from medgrape.safety.thresholds import CalibrationError
from medgrape.training.barrier import Meeting
from medgrape.training.films import LEARNT, TrainingError, TrainingFilms
from medgrape.training.journal import Journal
from medgrape.training.launchers import process_info
from medgrape.training.loop import Workshop
from medgrape.training.mlflow_log import MlflowLog, Tracking, open_log, telling
from medgrape.training.pipeline import ComparedCourse, ComparedGraduate, Course, Graduate
from medgrape.training.plan import EVERYTHING, fetch, keep
from medgrape.training.preflight import (
    refuse_changed_films,
    refuse_unknown_parts,
    refuse_unlearnable,
    refuse_unusable_place,
)
from medgrape.training.processes import launch
from medgrape.training.run_artifacts import data_facts, exemplar_films, usual_scores

PLAN = "plan.json"
PARTS = {
    "config": "settings",
    "dataset": "labels",
    "films": "films",
    "sources": "weights of the backbone or the text encoder",
    "versions": "versions of the software",
}
_WHERE = ("processes", "threads")
"""Settings that say where a training runs, not what is learnt: one that is gone on with may have others."""


def alike(one: Config, other: Config) -> bool:
    """Whether two trainings are to learn the same, wherever each of them runs."""
    return bool(_learnt(one.model_dump(mode="json")) == _learnt(other.model_dump(mode="json")))


def _learnt(settings: Any) -> Any:  # noqa: ANN401 (of a file that anybody may have written)
    if not isinstance(settings, dict) or not isinstance(settings.get("training"), dict):
        return settings
    return settings | {"training": {key: told for key, told in settings["training"].items() if key not in _WHERE}}


def agree(work: Path, config: Config, data: Path, cached: CachedFilms) -> None:
    """Write down what is begun with, or compare it with what was written down."""
    plan, now = work / PLAN, _plan(config, data, cached)
    if not plan.is_file():
        with whole_file(plan) as draft:
            draft.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
        return
    begun = json.loads(plan.read_text("utf-8"))
    for key, what in PARTS.items():
        before, after = begun.get(key), json.loads(json.dumps(now[key]))
        if (_learnt(before) != _learnt(after)) if key == "config" else before != after:
            raise TrainingError(
                f"This training was begun with other {what}; choose another --out, or remove {work} to begin anew."
            )


def _plan(config: Config, data: Path, cached: CachedFilms) -> dict[str, Any]:
    readable = [cached.contents[position] for position in cached.readable()]
    return {
        "config": config.model_dump(mode="json"),
        "dataset": checksum(data),
        "films": hashlib.sha256("".join(readable).encode()).hexdigest(),
        "sources": _sources(config),
        "versions": {name: version(name) for name in ("medgrape", "torch", "numpy", "scikit-learn")}
        | {one["distribution"]: one["version"] for one in parts_used(config).values()},
    }


def _sources(config: Config) -> dict[str, str]:
    """Every local file that weights are read from."""
    given = (Path(place).expanduser() for place in (config.backbone.name, config.backbone.weights, config.text.encoder))
    places = [place for place in given if str(place) != "." and place.exists()]
    files = [f for p in places for f in ([p] if p.is_file() else sorted(p.rglob("*"))) if f.is_file()]
    return {str(file): sha256(file) for file in files}


_LOCK_FREE_WITHIN = 30.0
"""Seconds in which processes of an attempt that torchrun or SLURM has given up are gone, and their lock with them."""


@dataclass(frozen=True)
class TrainingJob:
    """What is to be trained, on what, and where it goes."""

    config: Config
    data: Path
    out: Path
    stage_cache: Path | None = None
    """A folder of finished stages: trainings that differ in later ones alone learn the same ones once."""
    cached_stages: tuple[str, ...] = EVERYTHING
    """What is kept there."""
    tracking: Tracking | None = None
    """Who else is told how it goes."""

    @property
    def work(self) -> Path:
        """Where the training happens, beside the run that it becomes."""
        out = self.out.resolve()
        return out.with_name(f".{out.name}.training")


def train(order: TrainingJob, *, track: Track = quietly, watch: Watch = unwatched) -> Path:
    """Train, or go on training, and leave a sealed run in ``order.out``."""
    refuse_unknown_parts(order.config)
    if process_info() is not None or not _is_there(
        order
    ):  # processes that others started must all hear the same answer
        launch(order.config.training, _work, order, track, watch)
    return order.out


def resumable(order: TrainingJob) -> bool:
    """Whether an earlier attempt left something to go on with."""
    return (order.work / PLAN).is_file()


def _is_there(order: TrainingJob) -> bool:
    """Whether the run is finished; another one in its place is not overwritten."""
    if not (order.out / MANIFEST).is_file():
        refuse_unusable_place(order.out)
        Dataset.load(order.data)
        return False
    loaded = load_any(order.out)
    if not (alike(loaded.run.config, order.config) and loaded.manifest.dataset["checksum"] == checksum(order.data)):
        raise TrainingError(
            f"{order.out} holds a run with other settings or of another data set; choose another --out."
        )
    refuse_changed_films(order.out, loaded.run, order.data)
    shutil.rmtree(order.work, ignore_errors=True)  # of an attempt that was killed at its very end
    return True


def _work(fabric: Fabric, order: TrainingJob, track: Track, watch: Watch) -> None:
    """What each process does; the first one alone writes, and alone goes on after the backbone has learnt."""
    meeting, leads = Meeting.of(fabric), fabric.is_global_zero
    if meeting.told(leads and process_info() is not None and _is_there(order)):
        return
    if leads:
        _lead(fabric, meeting, order, track=track, watch=watch)
    else:
        meeting.see(order.work / PLAN)  # the first process holds the lock and knows what is gone on with
        _learn(fabric, meeting, order, track=quietly, watch=unwatched)
    meeting.wait()  # until the run is whole: whoever started us has all of us to start again, or none


def _lead(fabric: Fabric, meeting: Meeting, order: TrainingJob, *, track: Track, watch: Watch) -> None:
    order.work.mkdir(parents=True, exist_ok=True)
    patience = 0.0 if process_info() is None else _LOCK_FREE_WITHIN
    try:
        with FileLock(order.work.with_suffix(".lock"), timeout=patience):
            _clean(order)
            told = _told(order)
            with telling(told, order.out):
                cached = _films(order, track)
                agree(order.work, order.config, order.data, cached)
                fetch(order.stage_cache, order.work, order.cached_stages)
                meeting.see(order.work / PLAN)
                _learn(fabric, meeting, order, track=track, watch=watch, told=told)
            shutil.rmtree(order.work)
    except Timeout:
        raise TrainingError(f"Another process is training {order.out} at this moment; wait for it.") from None


def _told(order: TrainingJob) -> MlflowLog | None:
    if order.tracking is None:
        return None
    return open_log(order.tracking, order.config, order.data, order.work, order.out.name)


def _clean(order: TrainingJob) -> None:
    """Drafts of attempts that were killed."""
    out = order.out.resolve()
    for left_over in (*order.work.glob(".*.part"), *out.parent.glob(f".{out.name}.*.part")):
        shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()


def _films(order: TrainingJob, track: Track) -> CachedFilms:
    dataset = Dataset.load(order.data)
    paths = [dataset.film_path(film) for film in dataset.pictured]
    return FilmCache(order.data / "cache", order.config).films(paths, track=track)


def _learn(
    fabric: Fabric, meeting: Meeting, order: TrainingJob, *, track: Track, watch: Watch, told: MlflowLog | None = None
) -> None:
    films = TrainingFilms.of(Dataset.load(order.data), _films(order, quietly), *LEARNT)
    if meeting.told(films.places) != films.places:
        raise TrainingError("This process can read other films than the first one; see medgrape data check.")
    refuse_unlearnable(order.config, films)
    workshop = Workshop(fabric, order.work, order.config.seed, Journal(order.work, listener=told), watch, meeting)
    course = Course if order.config.model.method == "grape" else ComparedCourse
    try:
        graduate = course(order.config, films, workshop, track).run()
    finally:
        workshop.journal.close()
    if graduate is not None:
        keep(order.stage_cache, order.work, order.cached_stages)
        _write(order, _assembled(order, graduate, films, track), films)


def _calibrated(run: Run, order: TrainingJob, track: Track) -> Run:
    """With thresholds for the safety check, where the settings ask for them; or with the reason why there are none."""
    asked = order.config.safety.calibrate
    if asked == "none":
        return run
    try:
        return replace(run, safety=learn_safety(run, order.data, balanced=asked == "balanced", track=track))
    except CalibrationError as refusal:
        return replace(run, metrics=run.metrics | {NOT_CALIBRATED: str(refusal)})


def _assembled(
    order: TrainingJob, graduate: Graduate | ComparedGraduate, films: TrainingFilms, track: Track
) -> Run | BaselineRun:
    """Everything that reading needs."""
    config, concepts, classes = order.config, films.dataset.concepts, films.dataset.classes
    metrics = graduate.metrics | {"films": len(films), "films_refused": films.refused, "data": data_facts(films)}
    if isinstance(graduate, ComparedGraduate):
        return BaselineRun(config, concepts, classes, graduate.model, metrics, films.fingerprints, parts_used(config))
    usual = usual_scores(graduate.scores, films)
    exemplars = exemplar_films(graduate.scores, films, graduate.grid, show=config.exemplars.show)
    run = Run(
        config, concepts, classes, graduate.model, usual, exemplars, metrics, films.fingerprints,
        own_parts=parts_used(config),
    )  # fmt: skip
    return _calibrated(run, order, track)


def _write(order: TrainingJob, run: Run | BaselineRun, films: TrainingFilms) -> None:
    """Beside its place, and moved into it at once."""
    with whole_folder(order.out) as draft:
        for name in KEEPSAKES:
            copied(order.work / name, draft / name)
        run.save(draft, {"name": films.dataset.name, "checksum": checksum(order.data)})
