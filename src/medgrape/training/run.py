"""From a prepared data set to a run: all stages in order; an interrupted training is continued."""

import shutil
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from lightning_fabric import Fabric

from medgrape.baselines.methods import BaselineRun, load_any
from medgrape.config import Config
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.files import copied, whole_folder
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.runs.checkpoint import LOG_FILES, ReferenceScores, Run
from medgrape.runs.exemplars import NO_FILM, ExemplarFilms, thumbnails
from medgrape.runs.manifest import MANIFEST, parts_used
from medgrape.safety.calibration import NOT_CALIBRATED, learn_safety
from medgrape.safety.thresholds import CalibrationError
from medgrape.training import preflight
from medgrape.training.assessment import ValidationFilms
from medgrape.training.film_scores import TrainingScores
from medgrape.training.films import LEARNT, TrainingError, TrainingFilms
from medgrape.training.launchers import process_info
from medgrape.training.loop import TrainingContext
from medgrape.training.pipeline import BaselinePipeline, GrapePipeline, TrainedBaseline, TrainedGrape
from medgrape.training.plan import EVERYTHING, PLAN, is_same_training, link_from_cache, link_to_cache, write_or_verify
from medgrape.training.processes import Barrier, launch
from medgrape.training.training_log import MlflowLog, Tracking, TrainingLog, open_mlflow, reporting_end

THUMBNAIL = 112
_LOCK_FREE_WITHIN = 30.0  # Seconds until a launcher has ended all processes of an earlier attempt


@dataclass(frozen=True)
class TrainingJob:
    """What to train, on which data set, and where the run goes."""

    config: Config
    data: Path
    out: Path
    stage_cache: Path | None = None  # Folder of finished stages that trainings with equal earlier stages share
    cached_stages: tuple[str, ...] = EVERYTHING  # The stages that are kept there
    tracking: Tracking | None = None  # Where MLflow keeps the log, beside log.jsonl

    @property
    def work(self) -> Path:
        """The folder of the training while it runs, beside ``out``."""
        out = self.out.resolve()
        return out.with_name(f".{out.name}.training")


def train(job: TrainingJob, *, track: Track = quietly, watch: Watch = unwatched) -> Path:
    """Train a model, or continue its training, and return the folder of the sealed run."""
    preflight.refuse_unknown_parts(job.config)
    if process_info() is not None or not _is_finished(job):  # processes of a launcher must get the same answer
        launch(job.config.training, _work, job, track, watch)
    return job.out


def resumable(job: TrainingJob) -> bool:
    """Return whether an earlier attempt can be continued."""
    return (job.work / PLAN).is_file()


def _is_finished(job: TrainingJob) -> bool:
    """Return whether the run is finished; raise if another run is in its folder."""
    if not (job.out / MANIFEST).is_file():
        preflight.refuse_unusable_folder(job.out)
        Dataset.load(job.data)
        return False
    loaded = load_any(job.out)
    is_same_data = loaded.manifest.dataset["checksum"] == checksum(job.data)
    if not (is_same_training(loaded.run.config, job.config) and is_same_data):
        raise TrainingError(f"{job.out} holds a run with other settings or of another data set; choose another --out.")
    preflight.refuse_changed_films(job.out, loaded.run, job.data)
    shutil.rmtree(job.work, ignore_errors=True)  # of an attempt that was killed at its very end
    return True


def _work(fabric: Fabric, job: TrainingJob, track: Track, watch: Watch) -> None:
    """Work of each process. Only rank 0 writes, and only rank 0 continues after the training of the backbone."""
    barrier, is_rank_zero = Barrier.of(fabric), fabric.is_global_zero
    if barrier.broadcast(is_rank_zero and process_info() is not None and _is_finished(job)):
        return
    if is_rank_zero:
        _lead(fabric, barrier, job, track=track, watch=watch)
    else:
        barrier.wait_for_file(job.work / PLAN)  # rank 0 holds the lock
        _learn(fabric, barrier, job, track=quietly, watch=unwatched)
    barrier.wait()  # until the run is complete: a launcher restarts all processes or none


def _lead(fabric: Fabric, barrier: Barrier, job: TrainingJob, *, track: Track, watch: Watch) -> None:
    job.work.mkdir(parents=True, exist_ok=True)
    timeout, out = 0.0 if process_info() is None else _LOCK_FREE_WITHIN, job.out.resolve()
    try:
        with FileLock(job.work.with_suffix(".lock"), timeout=timeout):
            for draft in (*job.work.glob(".*.part"), *out.parent.glob(f".{out.name}.*.part")):  # of killed attempts
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
            tracking, config = job.tracking, job.config
            mlflow = open_mlflow(tracking, config, job.data, job.work, job.out.name) if tracking else None
            with reporting_end(mlflow, job.out):
                cached = cached_films(job.config, Dataset.load(job.data), job.data, track)
                write_or_verify(job.work, job.config, job.data, cached)
                link_from_cache(job.stage_cache, job.work, job.cached_stages)
                barrier.wait_for_file(job.work / PLAN)
                _learn(fabric, barrier, job, track=track, watch=watch, mlflow=mlflow)
            shutil.rmtree(job.work)
    except Timeout:
        raise TrainingError(f"Another process is training {job.out}; wait until it ends.") from None


def _learn(
    fabric: Fabric, barrier: Barrier, job: TrainingJob, *, track: Track, watch: Watch, mlflow: MlflowLog | None = None
) -> None:
    dataset = Dataset.load(job.data)
    films = TrainingFilms.of(dataset, cached_films(job.config, dataset, job.data), *LEARNT)
    if barrier.broadcast(films.places) != films.places:
        raise TrainingError("This process can read other films than rank 0; see medgrape data check.")
    preflight.refuse_unlearnable(job.config, films)
    pipeline = GrapePipeline if job.config.model.method == "grape" else BaselinePipeline
    with closing(TrainingLog(job.work, mlflow=mlflow)) as log:
        context = TrainingContext(fabric, job.work, job.config.seed, log, watch, barrier)
        trained = pipeline(job.config, films, context, track).run()
    if trained is None:
        return
    link_to_cache(job.stage_cache, job.work, job.cached_stages)
    run = _run(job, trained, films, track)
    with whole_folder(job.out) as draft:
        for name in LOG_FILES:
            copied(job.work / name, draft / name)
        run.save(draft, {"name": films.dataset.name, "checksum": checksum(job.data)})


def _run(
    job: TrainingJob, trained: TrainedGrape | TrainedBaseline, films: TrainingFilms, track: Track
) -> Run | BaselineRun:
    """Assemble the run; calibrate its safety check if the settings say so."""
    config, concepts, classes = job.config, films.dataset.concepts, films.dataset.classes
    plugins, calibrate = parts_used(config), config.safety.calibrate
    metrics = trained.metrics | {"films": len(films), "films_refused": films.refused, "data": data_facts(films)}
    if isinstance(trained, TrainedBaseline):
        return BaselineRun(config, concepts, classes, trained.model, metrics, films.fingerprints, plugins)
    reference_scores = compute_reference_scores(trained.scores, films)
    exemplars = exemplar_films(trained.scores, films, trained.grid, show=config.exemplars.show)
    run = Run(
        config, concepts, classes, trained.model, reference_scores, exemplars, metrics, films.fingerprints,
        plugins=plugins,
    )  # fmt: skip
    try:
        if calibrate != "none":
            run = replace(run, safety=learn_safety(run, job.data, balanced=calibrate == "balanced", track=track))
    except CalibrationError as error:
        run = replace(run, metrics=run.metrics | {NOT_CALIBRATED: str(error)})
    return run


def compute_reference_scores(scores: TrainingScores, films: TrainingFilms) -> ReferenceScores:
    """Compute medians over training films with and without each concept; over all films if there are none."""
    training = films.positions("train")
    labels, plain, peaks = films.labels[training].numpy(), scores.scores[0][training], scores.peaks[training]
    rows = []
    for concept in range(labels.shape[1]):
        absent, present = (labels[:, concept] == 0, labels[:, concept] == 1)
        absent, present = (chosen if chosen.any() else np.ones_like(chosen) for chosen in (absent, present))
        peak = peaks[:, concept]
        rows.append((np.median(plain[absent, concept], axis=0), np.median(peak[absent]), np.median(peak[present])))
    return ReferenceScores(*(torch.from_numpy(np.stack(column)).float() for column in zip(*rows, strict=True)))


def exemplar_films(scores: TrainingScores, films: TrainingFilms, grid: tuple[int, int], *, show: bool) -> ExemplarFilms:
    """Make thumbnails of the nearest film of each prototype, each film once; none without ``show``."""
    nearest = np.where(show, scores.nearest_films, NO_FILM)
    shown = np.setdiff1d(nearest, NO_FILM).tolist()
    pictures = [films.cached[films.places[film]] for film in shown]
    return ExemplarFilms(
        grid,
        tuple(films.records[film].id for film in shown),
        thumbnails(pictures, THUMBNAIL),
        np.where(nearest == NO_FILM, NO_FILM, np.searchsorted(shown, nearest)).astype(np.int64),
        np.array(scores.nearest_patches, dtype=np.int64),
        np.array(scores.nearest_similarity, dtype=np.float32),
    )


def data_facts(films: TrainingFilms) -> dict[str, Any]:
    """Count the training and validation films, and evaluate the trivial answer on the latter."""
    validation = ValidationFilms.of(films)
    return {
        "source": films.dataset.source.kind,
        "splits": {split: _counts(films, split) for split in LEARNT},
        "trivial": {"answer": validation.trivial_answer, **asdict(validation.trivial)},
    }


def _counts(films: TrainingFilms, split: str) -> dict[str, Any]:
    positions, dataset = films.positions(split), films.dataset
    records, shown = [films.records[film] for film in positions], (films.labels[positions] == 1).sum(dim=0).tolist()
    classes = Counter(film.class_name for film in records)
    return {
        "films": len(records),
        "patients": len({film.patient for film in records}),
        "with_boxes": sum(film.id in dataset.boxes_by_film for film in records),
        "classes": {name: classes[name] for name in dataset.classes},
        "concepts": dict(zip(dataset.concepts.names, shown, strict=True)),
        "sex": dict(sorted(Counter(film.sex or "not known" for film in records).items())),
    }
