"""What a model is worth: measured here on validation films, or found beside its run."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from medgrape.datasets.dataset import Dataset, checksum
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.progress import Track
from medgrape.runs.checkpoint import Run
from medgrape.server.api.common import HASH, ModelVersion, Number, Told, Version, When
from medgrape.server.api.evaluations import EvaluationTold, evaluation_of
from medgrape.server.api.jobs import JobTold, job_told
from medgrape.server.models import loaded, model_row
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.room_folder import logger
from medgrape.server.security.roles import Role, User
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.storage.tables import ModelRow, stamp

if TYPE_CHECKING:
    from medgrape.training.assessment import Assessment


class PrototypeUse(Told):
    """What one prototype does on the training films that show its finding."""

    number: int = Field(examples=[3])
    strongest: int = Field(
        description="On how many of them it answers most strongly of the finding's; 0 if discarded.", examples=[14]
    )
    in_box: Number | None = Field(
        description="On which share of those with a box its best patch touches one; null: there are none.",
        examples=[0.62],
    )


class ConceptUse(Told):
    """The prototypes of one finding."""

    name: str = Field(examples=["active_tb"])
    shown: int = Field(description="Training films that show it; 0 where the data set does not know it.", examples=[84])
    prototypes: tuple[PrototypeUse, ...] = Field(description="In the order of their numbers.")


class StandingTold(Told):
    """How good answers are on validation films."""

    macro_f1: Number = Field(examples=[0.81])
    accuracy: Number = Field(examples=[0.84])


class TrivialTold(StandingTold):
    """Always naming the class that is most frequent in training."""

    answer: str = Field(examples=["healthy"])


class EffectTold(StandingTold):
    """What the model that this one was made from gets on the same films."""

    parent: Version
    changed: int = Field(description="Films whose class is another now.", examples=[6])


class WorthTold(Told):
    """What a data set tells about a model. Its test films are not looked at."""

    model: Version
    data_set: str = Field(examples=["tbx11k"])
    checksum: str = Field(description="Of the data set as it was then.", examples=[HASH])
    its_own: bool = Field(description="Whether the model was trained on that very data set.")
    measured_at: When
    films: int = Field(description="Validation films whose class is known.", examples=[310])
    standing: StandingTold
    trivial: TrivialTold
    parent: EffectTold | None = Field(description="null where the model was not made here, or its parent is gone.")
    concepts: tuple[ConceptUse, ...] = Field(description="In the model's order.")


_UNWRITABLE = (
    "The server may not write into its data set's folder, where what models see on films is kept; allow it to."
)


def refuse_unfit(room: Room, model: str) -> None:
    """Refuse at once what cannot be measured: no data set, or one with other classes than the model."""
    data = _data(room)
    with room.database.reading() as session:
        row = model_row(session, model)
    own, theirs = loaded(room, row).reader.loaded.run.classes, Dataset.load(data).classes
    if own != theirs:
        raise Problem(
            409,
            "other_classes",
            f"The model decides between {', '.join(own)}, the server's data set between {', '.join(theirs)}: the model "
            "cannot be measured on it. Start the server with a --data DIR that fits.",
        )


def measure(room: Room, user: User, model: str, track: Track) -> dict[str, Any]:
    """Work it out and keep it; what came of it."""
    from medgrape.training.assessment import assess

    row, parent = _with_parent(room, model)
    before = None if parent is None else loaded(room, parent).reader
    reader = loaded(room, row).reader
    try:
        found = assess(reader, _data(room), parent=before, track=track)
    except PermissionError as error:
        raise UserError(_UNWRITABLE) from error
    list(track([None], "writing it down", 1))  # the last moment at which it can be cancelled
    _keep(room, user, _told(row, parent, reader.loaded.run, found))
    return {"model": model, "data_set": found.data_set}


def kept_worth(room: Room, model: str) -> WorthTold:
    """What was worked out on the server's data set; without one, what was worked out last on any."""
    with room.database.reading() as session:
        model_row(session, model)
    only = checksum(_data(room)) if room.settings.data else None
    found = [told for told in _all_kept(room, model) if only in (None, told.checksum)]
    if not found:
        how = (
            "ask for it with POST"
            if room.settings.data
            else "start the server with --data DIR, then ask for it with POST"
        )
        raise Problem(
            404, "not_measured", f"Nobody has measured this model on the server's data set yet: {how} on this address."
        )
    return max(found, key=lambda told: told.measured_at)


def _data(room: Room) -> Path:
    if not room.settings.data:
        raise Problem(
            409,
            "no_data_set",
            "The server has no data set to measure on; start it with --data DIR, a prepared data set.",
        )
    return Path(room.settings.data)


def _with_parent(room: Room, model: str) -> tuple[ModelRow, ModelRow | None]:
    """The model, and the one that it was made from if it is still here."""
    with room.database.reading() as session:
        row = model_row(session, model)
        parent = None if row.parent is None else session.get(ModelRow, row.parent)
    return row, None if parent is None or parent.removed_at is not None else parent


def _told(row: ModelRow, parent: ModelRow | None, run: Run, found: "Assessment") -> WorthTold:
    effect = None
    if parent is not None and found.effect is not None:
        before = asdict(found.effect.before)
        effect = EffectTold(parent=parent.version, changed=found.effect.changed, **before)
    return WorthTold(
        model=row.version,
        data_set=found.data_set,
        checksum=found.checksum,
        its_own=found.its_own,
        measured_at=stamp(datetime.now(UTC)),
        films=found.films,
        standing=StandingTold.model_validate(found.metrics),
        trivial=TrivialTold(answer=found.trivial_answer, **asdict(found.trivial)),
        parent=effect,
        concepts=tuple(_used(name, place, found) for place, name in enumerate(run.concepts.names)),
    )


def _used(name: str, row: int, found: "Assessment") -> ConceptUse:
    usage = found.usage
    each = zip(usage.strongest[row].tolist(), usage.in_box[row].tolist(), strict=True)
    prototypes = tuple(
        PrototypeUse(number=number, strongest=strongest, in_box=None if math.isnan(share) else share)
        for number, (strongest, share) in enumerate(each)
    )
    return ConceptUse(name=name, shown=int(usage.shown[row]), prototypes=prototypes)


def _keep(room: Room, user: User, told: WorthTold) -> None:
    """Under a lock on the model, so that nothing is kept of one that is being removed."""
    with room.database.writing() as session:
        model_row(session, told.model, lock=True)
        room.store.record(
            session, user, "model.measured", model=told.model, data_set=told.data_set, checksum=told.checksum
        )
        with whole_file(room.folder.assessment_file(told.model, told.checksum)) as draft:
            draft.write_text(told.model_dump_json(), "utf-8")


def _all_kept(room: Room, model: str) -> Iterator[WorthTold]:
    """A file that cannot be read counts for nothing, and is said to be there."""
    for path in room.folder.assessment_files(model):
        try:
            yield WorthTold.model_validate_json(path.read_bytes())
        except FileNotFoundError:  # removed since
            continue
        except ValidationError:
            logger.error("%s is damaged; measure the model again", path.name)


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)


@routes.get("/models/{model}/worth")
def get_worth(model: ModelVersion, services: Services) -> WorthTold:
    """Tell what was found out on the server's data set: what prototypes do, and what the change to this model did."""
    return kept_worth(services.room, model)


@curating.post("/models/{model}/worth", status_code=202, responses=problem_responses(409))
def measure_worth(model: ModelVersion, services: Services, user: CurrentUser) -> JobTold:
    """Measure a model, and the one that it was made from, on the server's data set. Follow the job.

    Prototypes are watched on training films, classes are compared on validation films. Test films are not looked at.
    """
    refuse_unfit(services.room, model)
    return job_told(services.jobs.start(user, "model.worth", lambda track: measure(services.room, user, model, track)))


@routes.get("/models/{model}/evaluation")
def get_evaluation(model: ModelVersion, services: Services) -> EvaluationTold:
    """Tell what medgrape evaluate and medgrape audit found out about exactly this model, where it lies beside it."""
    return evaluation_of(services.room, model)
