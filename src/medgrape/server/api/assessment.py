"""Assessment of a model on the server's data set: use of its prototypes, and figures on validation films."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from medgrape.datasets.dataset import Dataset, check_classes, checksum
from medgrape.errors import UserError
from medgrape.files import write_text
from medgrape.progress import Track
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import HASH, ModelVersion, Number, ResponseModel, Version, When
from medgrape.server.api.evaluations import MajorityFigures
from medgrape.server.api.jobs import JobResponse
from medgrape.server.errors import Problem
from medgrape.server.models import find_model, loaded, model_row
from medgrape.server.room import Room, logger
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.storage.tables import ModelRow

if TYPE_CHECKING:
    from medgrape.training.assessment import Assessment


class PrototypeUsage(ResponseModel):
    """A prototype on the training films with its finding."""

    number: int = Field(examples=[3])
    strongest: int = Field(description="Films on which it scores highest of its finding.", examples=[14])
    in_box: Number | None = Field(description="Fraction of these with its best patch in a box.", examples=[0.62])


class ConceptUsage(ResponseModel):
    """The prototypes of one finding."""

    name: str = Field(examples=["active_tb"])
    shown: int = Field(description="Training films with it; 0 if the data set does not know it.", examples=[84])
    prototypes: tuple[PrototypeUsage, ...] = Field(description="In the order of their numbers.")


class ValidationMetrics(ResponseModel):
    """Figures on validation films."""

    macro_f1: Number = Field(examples=[0.81])
    accuracy: Number = Field(examples=[0.84])


class ParentMetrics(ValidationMetrics):
    """Figures of the parent model on the same films."""

    parent: Version
    changed: int = Field(description="Films that this model puts into another class.", examples=[6])


class AssessmentResponse(ResponseModel):
    """Assessment of a model on a data set. Its test films are not read."""

    model: Version
    data_set: str = Field(examples=["tbx11k"])
    checksum: str = Field(description="Checksum of the data set at that time.", examples=[HASH])
    its_own: bool = Field(description="Whether the model was trained on that data set.")
    measured_at: When
    films: int = Field(description="Validation films with a known class.", examples=[310])
    standing: ValidationMetrics
    trivial: MajorityFigures
    parent: ParentMetrics | None = Field(description="null if the model was not made here, or its parent was removed.")
    concepts: tuple[ConceptUsage, ...] = Field(description="In the model's order.")


def check_measurable(room: Room, model: str) -> None:
    """Raise if there is no data set, or it has other classes than the model."""
    data = _data(room)
    classes, dataset = find_model(room, model)[1].loaded.run.classes, Dataset.load(data)
    try:
        check_classes(classes, dataset)
    except UserError as error:
        raise Problem(409, "other_classes", f"{error} Start the server with another --data DIR.") from error


def measure(room: Room, user: User, model: str, track: Track) -> dict[str, Any]:
    """Assess a model and its parent, store the assessment, and return the result of the job."""
    from medgrape.training.assessment import assess

    row, reader = find_model(room, model)
    with room.database.reading() as session:
        parent = session.get(ModelRow, row.parent or "")
    if parent is not None and parent.removed_at is not None:
        parent = None
    before = None if parent is None else loaded(room, parent).reader
    try:
        assessment = assess(reader, _data(room), parent=before, track=track)
    except PermissionError as error:
        raise UserError(
            "The server may not write into the folder of its data set, which caches features; give it permission."
        ) from error
    list(track([None], "writing the assessment", 1))  # last chance to cancel the job
    response = _response(row, parent, reader.concepts.names, assessment)
    data_set, content = assessment.data_set, assessment.checksum
    with room.database.writing() as session:
        model_row(session, model, lock=True)  # it may have been removed meanwhile
        room.store.record(session, user, "model.measured", model=model, data_set=data_set, checksum=content)
        write_text(room.folder.assessment_file(model, content), response.model_dump_json())
    return {"model": model, "data_set": data_set}


def _data(room: Room) -> Path:
    if not room.settings.data:
        raise Problem(409, "no_data_set", "The server has no data set; start it with --data DIR, a prepared data set.")
    return Path(room.settings.data)


def _response(
    row: ModelRow, parent: ModelRow | None, concepts: tuple[str, ...], assessment: "Assessment"
) -> AssessmentResponse:
    usage, effect = assessment.usage, assessment.effect
    lists = usage.shown.tolist(), usage.strongest.tolist(), usage.in_box.tolist()
    response = vars(assessment) | {
        "model": row.version,
        "measured_at": datetime.now(UTC),
        "standing": assessment.metrics,
        "trivial": asdict(assessment.trivial) | {"answer": assessment.trivial_answer},
        "parent": None,
        "concepts": [
            {"name": name, "shown": shown, "prototypes": _prototypes(strongest, in_box)}
            for name, shown, strongest, in_box in zip(concepts, *lists, strict=True)
        ],
    }
    if parent is not None and effect is not None:
        response["parent"] = asdict(effect.before) | {"parent": parent.version, "changed": effect.changed}
    return AssessmentResponse.model_validate(response)


def _prototypes(strongest: list[int], in_box: list[float]) -> list[dict[str, Any]]:
    return [
        {"number": number, "strongest": films, "in_box": None if math.isnan(share) else share}
        for number, (films, share) in enumerate(zip(strongest, in_box, strict=True))
    ]


def _stored_assessments(room: Room, model: str) -> Iterator[AssessmentResponse]:
    """Yield the stored assessments; log a damaged file and skip it."""
    for path in room.folder.assessment_files(model):
        try:
            yield AssessmentResponse.model_validate_json(path.read_bytes())
        except FileNotFoundError:  # removed meanwhile
            continue
        except ValidationError:
            logger.error("%s is damaged; measure the model again", path.name)


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)


@routes.get("/models/{model}/worth")
def get_worth(model: ModelVersion, services: Services) -> AssessmentResponse:
    """Get the assessment on the server's data set: use of prototypes, and figures before and after the last change."""
    room = services.room
    with room.database.reading() as session:
        model_row(session, model)
    only = checksum(_data(room)) if room.settings.data else None  # without a data set, the last one on any
    stored = [entry for entry in _stored_assessments(room, model) if only in (None, entry.checksum)]
    if stored:
        return max(stored, key=lambda entry: entry.measured_at)
    how = (
        "POST to this address" if room.settings.data else "start the server with --data DIR, then POST to this address"
    )
    raise Problem(404, "not_measured", f"This model was not measured on the server's data set yet: {how}.")


@curating.post("/models/{model}/worth", status_code=202, responses=problem_responses(409))
def measure_worth(model: ModelVersion, services: Services, user: CurrentUser) -> JobResponse:
    """Measure a model and its parent on the server's data set. Follow the job.

    Prototypes are measured on training films, classes on validation films. Test films are not read.
    """
    check_measurable(services.room, model)
    row = services.jobs.start(user, "model.worth", lambda track: measure(services.room, user, model, track))
    return JobResponse.model_validate(row)
