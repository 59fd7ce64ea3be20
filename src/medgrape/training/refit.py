"""The head is fitted again, after prototypes were discarded or a concept was added: seconds, and nothing else moves."""

from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lightning_fabric import Fabric

from medgrape.datasets.dataset import checksum
from medgrape.model.grape import Grape
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.reader import Reader
from medgrape.runs.checkpoint import Run
from medgrape.training.assessment import ValidationFilms, ValidationMetrics
from medgrape.training.film_scores import KeptScores, films_for, kept_scores
from medgrape.training.films import TrainingFilms
from medgrape.training.journal import Journal
from medgrape.training.loop import Workshop, learn
from medgrape.training.processes import one_device
from medgrape.training.run_artifacts import peaks_again
from medgrape.training.stage import hold_still
from medgrape.training.stages.head import HeadLesson


@dataclass(frozen=True)
class RefitFigures:
    """What fitting a head again changed on validation films."""

    data_set: str
    its_own: bool
    """Whether the run was trained on that very data set."""
    films: int
    """Validation films whose class is known."""
    before: ValidationMetrics
    """The run before anything was changed."""
    unfitted: ValidationMetrics
    """After prototypes or concepts were changed, with the head as it was."""
    after: ValidationMetrics
    trivial: ValidationMetrics
    """Always naming the class that is most frequent in training."""
    trivial_answer: str
    changed: int
    """Films whose class is another after than before."""
    best_epoch: int

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Refit:
    """A reader whose head was fitted again; nothing is written."""

    reader: Reader
    figures: RefitFigures


def refit(
    reader: Reader, data: Path, *, original: Reader | None = None, track: Track = quietly, watch: Watch = unwatched
) -> Refit:
    """Fit the head on the training films of ``data``, choose the epoch on its validation films.

    ``original`` is the reader before prototypes were discarded or restored, to compare with.
    """
    run = reader.loaded.run
    films = films_for(run, data, track)
    fabric = one_device("cpu" if run.config.training.device == "cpu" else "auto")
    found = kept_scores(run, films, data, device=str(fabric.device), track=track)
    model, best_epoch = _fitted(run, found, films, fabric, watch)
    steps = ((original or reader).loaded.run.grape, run.grape, model)
    its_own = reader.loaded.manifest.dataset["checksum"] == checksum(data)
    figures = _figures(steps, found, films, its_own=its_own, best_epoch=best_epoch)
    usual = peaks_again(run, films, _curated(reader, original or reader, films), track)
    fitted = replace(run, model=model, usual=usual, metrics=run.metrics | {"refit": figures.to_json()})
    return Refit(_changed(reader, fitted, films, figures), figures)


def _curated(reader: Reader, original: Reader, films: TrainingFilms) -> list[str]:
    """Concepts of the data set that go by some prototypes only, or by others than before: they peak elsewhere."""
    now, before = (one.loaded.run.grape.atlas.kept for one in (reader, original))
    curated = (~now).any(dim=1)
    curated[: len(before)] |= (now[: len(before)] != before).any(dim=1)  # a concept may have been added since
    names = zip(reader.concepts.names, curated.tolist(), strict=True)
    return [name for name, changed in names if changed and name in films.dataset.concepts]


def _fitted(run: Run, found: KeptScores, films: TrainingFilms, fabric: Fabric, watch: Watch) -> tuple[Grape, int]:
    """A copy of the model with another head; the loop, the schedule and the seed are those of stage 4."""
    stage, config = run.config.stages.head, run.config
    model = deepcopy(run.grape).to(fabric.device)
    hold_still(model, stage.learns)
    lesson = HeadLesson(model, found, films, stage, config.seed, fabric.device)
    if config.model.standardise:
        lesson.fit_standard()
    with TemporaryDirectory() as folder:
        workshop = Workshop(fabric, Path(folder), config.seed, Journal(Path(folder)), watch)
        workshop.journal.begin([])
        try:
            state = learn(lesson, workshop)
        finally:
            workshop.journal.close()
    return model.cpu().eval().requires_grad_(False), state.best_epoch


def _figures(
    steps: tuple[Grape, Grape, Grape], found: KeptScores, films: TrainingFilms, *, its_own: bool, best_epoch: int
) -> RefitFigures:
    """Before, with the old head, and after, on the validation films themselves."""
    validation = ValidationFilms.of(films)
    before, unfitted, after = (validation.answers(model, found) for model in steps)
    return RefitFigures(
        data_set=films.dataset.name,
        its_own=its_own,
        films=len(validation),
        before=validation.metrics(before),
        unfitted=validation.metrics(unfitted),
        after=validation.metrics(after),
        trivial=validation.trivial,
        trivial_answer=validation.trivial_answer,
        changed=int((before != after).sum()),
        best_epoch=best_epoch,
    )


def _changed(reader: Reader, fitted: Run, films: TrainingFilms, figures: RefitFigures) -> Reader:
    """The run with the new head; it has learnt from these films from now on."""
    where = "its own data set" if figures.its_own else "another data set than it was trained on"
    learnt = tuple(sorted({*fitted.learnt_from, *films.fingerprints}))
    what = f"Fitted the head again on {figures.data_set!r}, {where}."
    return reader.changed(replace(fitted, learnt_from=learnt), what)
