"""What a model is worth on the server's data set: worked out as a job, kept in the room where every worker finds it."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from medgrape.data.dataset import Dataset, checksum
from medgrape.data.files import whole_file
from medgrape.errors import UserError
from medgrape.model.checkpoint import Run
from medgrape.progress import Track
from medgrape.server.archive import journal
from medgrape.server.model_rows import model_row
from medgrape.server.models import loaded
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.schemas.worth import ConceptUse, EffectTold, PrototypeUse, StandingTold, TrivialTold, WorthTold
from medgrape.server.security.roles import Person
from medgrape.server.storage.tables import ModelRow, stamp

if TYPE_CHECKING:  # training is slow to import
    from medgrape.training.worth import Worth

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


def measure(room: Room, person: Person, model: str, track: Track) -> dict[str, Any]:
    """Work it out and keep it; what came of it."""
    from medgrape.training.worth import worth_of

    row, parent = _with_parent(room, model)
    before = None if parent is None else loaded(room, parent).reader
    reader = loaded(room, row).reader
    try:
        found = worth_of(reader, _data(room), parent=before, track=track)
    except PermissionError as error:
        raise UserError(_UNWRITABLE) from error
    list(track([None], "writing it down", 1))  # the last moment at which it can be cancelled
    _keep(room, person, _told(row, parent, reader.loaded.run, found))
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


def _told(row: ModelRow, parent: ModelRow | None, run: Run, found: "Worth") -> WorthTold:
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
        standing=StandingTold.model_validate(found.standing),
        trivial=TrivialTold(answer=found.trivial_answer, **asdict(found.trivial)),
        parent=effect,
        concepts=tuple(_used(name, place, found) for place, name in enumerate(run.concepts.names)),
    )


def _used(name: str, row: int, found: "Worth") -> ConceptUse:
    usage = found.usage
    each = zip(usage.strongest[row].tolist(), usage.in_box[row].tolist(), strict=True)
    prototypes = tuple(
        PrototypeUse(number=number, strongest=strongest, in_box=None if math.isnan(share) else share)
        for number, (strongest, share) in enumerate(each)
    )
    return ConceptUse(name=name, shown=int(usage.shown[row]), prototypes=prototypes)


def _keep(room: Room, person: Person, told: WorthTold) -> None:
    """Under a lock on the model, so that nothing is kept of one that is being removed."""
    with room.database.writing() as session:
        model_row(session, told.model, lock=True)
        room.archive.note(
            session, person, "model.measured", model=told.model, data_set=told.data_set, checksum=told.checksum
        )
        with whole_file(room.folder.worth_of(told.model, told.checksum)) as draft:
            draft.write_text(told.model_dump_json(), "utf-8")


def _all_kept(room: Room, model: str) -> Iterator[WorthTold]:
    """A file that cannot be read counts for nothing, and is said to be there."""
    for path in room.folder.all_worth_of(model):
        try:
            yield WorthTold.model_validate_json(path.read_bytes())
        except FileNotFoundError:  # removed since
            continue
        except ValidationError:
            journal.error("%s is damaged; measure the model again", path.name)
