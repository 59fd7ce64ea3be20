"""Assessment of a model on the server's data set: what its prototypes do, and its figures on validation films."""

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
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import HASH, ModelVersion, Number, ResponseModel, Version, When
from medgrape.server.api.evaluations import MajorityFigures
from medgrape.server.api.jobs import JobResponse
from medgrape.server.errors import Problem
from medgrape.server.models import loaded, model_row
from medgrape.server.room import Room, logger
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.storage.tables import ModelRow, stamp

if TYPE_CHECKING:
    from medgrape.training.assessment import Assessment


class PrototypeUsage(ResponseModel):
    """One prototype on the training films that show its finding."""

    number: int = Field(examples=[3])
    strongest: int = Field(description="Films on which it has the finding's highest score.", examples=[14])
    in_box: Number | None = Field(description="Fraction of these on which its best patch is in a box.", examples=[0.62])


class ConceptUsage(ResponseModel):
    """The prototypes of one finding."""

    name: str = Field(examples=["active_tb"])
    shown: int = Field(description="Training films that show it; 0 where the data set does not know it.", examples=[84])
    prototypes: tuple[PrototypeUsage, ...] = Field(description="In the order of their numbers.")


class ValidationMetrics(ResponseModel):
    """Figures on validation films."""

    macro_f1: Number = Field(examples=[0.81])
    accuracy: Number = Field(examples=[0.84])


class ParentMetrics(ValidationMetrics):
    """Figures of the model that this one was made from, on the same films."""

    parent: Version
    changed: int = Field(description="Films to which this model gives another class.", examples=[6])


class AssessmentResponse(ResponseModel):
    """Assessment of a model on a data set. Its test films are not read."""

    model: Version
    data_set: str = Field(examples=["tbx11k"])
    checksum: str = Field(description="Of the data set as it was then.", examples=[HASH])
    its_own: bool = Field(description="Whether the model was trained on that very data set.")
    measured_at: When
    films: int = Field(description="Validation films whose class is known.", examples=[310])
    standing: ValidationMetrics
    trivial: MajorityFigures
    parent: ParentMetrics | None = Field(description="null where the model was not made here, or it was removed.")
    concepts: tuple[ConceptUsage, ...] = Field(description="In the model's order.")


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
    """Assess a model and its parent, store the result, and return the result of the job."""
    from medgrape.training.assessment import assess

    with room.database.reading() as session:
        row = model_row(session, model)
        parent = None if row.parent is None else session.get(ModelRow, row.parent)
    if parent is not None and parent.removed_at is not None:
        parent = None
    before = None if parent is None else loaded(room, parent).reader
    reader = loaded(room, row).reader
    try:
        found = assess(reader, _data(room), parent=before, track=track)
    except PermissionError as error:
        raise UserError(
            "The server may not write into its data set's folder, where what models see on films is kept; allow it to."
        ) from error
    list(track([None], "writing the assessment", 1))  # the last moment at which the job can be cancelled
    assessment = _response(row, parent, reader.concepts.names, found)
    data_set, content = found.data_set, found.checksum
    with room.database.writing() as session:
        model_row(session, model, lock=True)  # nothing is kept of one that is being removed
        room.store.record(session, user, "model.measured", model=model, data_set=data_set, checksum=content)
        with whole_file(room.folder.assessment_file(model, content)) as draft:
            draft.write_text(assessment.model_dump_json(), "utf-8")
    return {"model": model, "data_set": data_set}


def _data(room: Room) -> Path:
    if not room.settings.data:
        raise Problem(
            409,
            "no_data_set",
            "The server has no data set to measure on; start it with --data DIR, a prepared data set.",
        )
    return Path(room.settings.data)


def _response(
    row: ModelRow, parent: ModelRow | None, concepts: tuple[str, ...], found: "Assessment"
) -> AssessmentResponse:
    compared = None
    if parent is not None and found.effect is not None:
        compared = ParentMetrics(parent=parent.version, changed=found.effect.changed, **asdict(found.effect.before))
    return AssessmentResponse(
        model=row.version,
        data_set=found.data_set,
        checksum=found.checksum,
        its_own=found.its_own,
        measured_at=stamp(datetime.now(UTC)),
        films=found.films,
        standing=ValidationMetrics.model_validate(found.metrics),
        trivial=MajorityFigures(answer=found.trivial_answer, **asdict(found.trivial)),
        parent=compared,
        concepts=tuple(_usage(name, place, found) for place, name in enumerate(concepts)),
    )


def _usage(name: str, row: int, found: "Assessment") -> ConceptUsage:
    each = zip(found.usage.strongest[row].tolist(), found.usage.in_box[row].tolist(), strict=True)
    prototypes = tuple(
        PrototypeUsage(number=number, strongest=strongest, in_box=None if math.isnan(in_box) else in_box)
        for number, (strongest, in_box) in enumerate(each)
    )
    return ConceptUsage(name=name, shown=int(found.usage.shown[row]), prototypes=prototypes)


def _all_kept(room: Room, model: str) -> Iterator[AssessmentResponse]:
    """Skip a file that cannot be read, and log that it is there."""
    for path in room.folder.assessment_files(model):
        try:
            yield AssessmentResponse.model_validate_json(path.read_bytes())
        except FileNotFoundError:  # removed since
            continue
        except ValidationError:
            logger.error("%s is damaged; measure the model again", path.name)


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)


@routes.get("/models/{model}/worth")
def get_worth(model: ModelVersion, services: Services) -> AssessmentResponse:
    """Get the assessment on the server's data set: what prototypes do, and what the change to this model did."""
    room = services.room
    with room.database.reading() as session:
        model_row(session, model)
    only = checksum(_data(room)) if room.settings.data else None  # without a data set, the last one on any
    kept = [assessment for assessment in _all_kept(room, model) if only in (None, assessment.checksum)]
    if kept:
        return max(kept, key=lambda assessment: assessment.measured_at)
    how = "ask for it with POST"
    if not room.settings.data:
        how = f"start the server with --data DIR, then {how}"
    raise Problem(
        404, "not_measured", f"Nobody has measured this model on the server's data set yet: {how} on this address."
    )


@curating.post("/models/{model}/worth", status_code=202, responses=problem_responses(409))
def measure_worth(model: ModelVersion, services: Services, user: CurrentUser) -> JobResponse:
    """Measure a model, and the one that it was made from, on the server's data set. Follow the job.

    Prototypes are measured on training films, classes on validation films. Test films are not read.
    """
    refuse_unfit(services.room, model)
    row = services.jobs.start(user, "model.worth", lambda track: measure(services.room, user, model, track))
    return JobResponse.model_validate(row)
