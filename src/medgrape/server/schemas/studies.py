"""Studies: reading a film and correcting what a model saw."""

from math import inf
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from medgrape.feedback.change import ChangeKind
from medgrape.server.schemas.common import (
    ID,
    Asked,
    BoxAsked,
    BoxTold,
    ConceptName,
    Identifier,
    Plain,
    Shares,
    Told,
    Version,
    When,
)

StepKind = ChangeKind | Literal["undone", "redone"]
_BOX: Plain = {"x1": 310, "y1": 120, "x2": 420, "y2": 260}
Revision = Field(
    default=None, ge=0, le=10**6, description="Refuse (409, stale_study) unless the study still stands here.",
    examples=[0],
)  # fmt: skip


class OpenStudy(Asked):
    """Open a film, with the model in use or another."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"film": ID}]})

    film: Identifier
    model: Version | None = None


class CheckBox(Asked):
    """Ask what the model sees inside a box."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"box": _BOX, "concept": "active_tb"}]})

    box: BoxAsked
    concept: ConceptName = Field(description="What you say is inside.")


class DrawBox(Asked):
    """Say that something is, or is not, inside a box."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"box": _BOX, "concept": "active_tb"}]})

    box: BoxAsked
    concept: ConceptName | None = Field(
        description="What is inside; null: look here, whatever it is (or, if negative: there is nothing at all here)."
    )
    positive: bool = Field(default=True, description="Whether it is inside, or is not.")
    confirmed: bool = Field(default=False, description="Apply it though the model sees something else there.")
    reason: str | None = Field(default=None, max_length=500, description="Why, for the log. No patient's name.")
    revision: int | None = Revision


class RejectConcept(Asked):
    """Say that a finding is not on this film at all."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"concept": "obsolete_tb"}]})

    concept: ConceptName | None = Field(description="null: none of them is.")
    reason: str | None = Field(default=None, max_length=500, description="Why, for the log. No patient's name.")
    revision: int | None = Revision


class WithdrawCorrection(Asked):
    """Take one correction back, whenever it was made."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"revision": 2}]})

    reason: str | None = Field(default=None, max_length=500, description="Why, for the log. No patient's name.")
    revision: int | None = Revision


class StepBack(Asked):
    """Undo or redo."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"revision": 1}]})

    revision: int | None = Revision


class ConceptInBoxTold(Told):
    """One finding inside a box."""

    name: str = Field(examples=["active_tb"])
    mean: float = Field(examples=[0.48])
    variance: float = Field(examples=[0.0001])


class CheckTold(Told):
    """Does the model see inside the box what you say is there?"""

    claimed: str = Field(examples=["active_tb"])
    dominant: str = Field(examples=["obsolete_tb"])
    rival: str = Field(examples=["obsolete_tb"])
    gap: float = Field(description="By how much the rival leads over the claimed finding.", examples=[0.23])
    allowed: float = Field(description="A lead up to this is no warning.", examples=[0.05])
    gate: Annotated[float | None, BeforeValidator(lambda gate: None if gate == inf else gate)] = Field(
        description="The rival is believed up to this variance; null: always.", examples=[0.002]
    )
    silenced: bool = Field(description="The lead is large enough, but the rival's prototypes disagree too much.")
    mismatch: bool
    calibrated: bool = Field(description="Whether the thresholds were learnt from boxes.")
    origin: str = Field(
        description="Where the thresholds come from, in one sentence.", examples=["Calibrated on 120 validation boxes."]
    )
    concepts: tuple[ConceptInBoxTold, ...]
    reason: str = Field(description="In one sentence.", examples=["The model sees obsolete_tb here, not active_tb."])


class CorrectionTold(Told):
    """Something that a person said about the film."""

    kind: Literal["box", "not_box", "reject"]
    concept: str | None = Field(examples=["active_tb"])
    box: BoxTold | None
    confirmed: bool
    check: CheckTold | None


class StudyListed(Told):
    """A study in the list."""

    id: Identifier
    film: Identifier
    model: Version
    reader: str = Field(examples=["ada"])
    opened_at: When
    changed_at: When
    revision: int = Field(examples=[1])
    prediction: Shares


class StudyTold(StudyListed):
    """A study as it stands."""

    at: int = Field(
        description="The step that this answer tells of; less than ``revision`` when looking back.", examples=[1]
    )
    first_prediction: Shares = Field(description="Before any correction.")
    corrections: tuple[CorrectionTold, ...]
    can_undo: bool
    can_redo: bool
    notice: str = Field(examples=["Research software, not a medical device."])


class StudyMoved(Told):
    """What a step did."""

    study: StudyTold
    before: Shares
    after: Shares


class StepTold(Told):
    """A step that was taken in a study."""

    step: int = Field(examples=[1])
    event: int = Field(description="Its number in the log.", examples=[17])
    at: When
    by: str = Field(examples=["ada"])
    kind: StepKind
    about: ChangeKind = Field(description="What was undone or redone; else the same as ``kind``.")
    correction: CorrectionTold = Field(
        description="What was said, withdrawn or redrawn; of an undone or redone step likewise."
    )
    replaced: CorrectionTold | None = Field(description="In the place of which other, if ``about`` is redrawn.")
    reason: str | None = Field(examples=["seen on the earlier film"])
    before: Shares
    after: Shares
