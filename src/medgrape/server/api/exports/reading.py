"""A reading to take along: everything that is known of it, in one piece."""

from pydantic import Field

from medgrape.server.api.common import HASH, Identifier, Told, Version, When
from medgrape.server.api.explanations import ExplanationTold
from medgrape.server.api.films import FilmFactsTold
from medgrape.server.api.studies import StepTold, StudyTold


class FilmReadTold(Told):
    """The film that was read."""

    id: Identifier
    arrived_at: When
    facts: FilmFactsTold
    sex: str = Field(description="M, F, O, or empty.", examples=["F"])
    age: int | None = Field(description="In years; 90 for all who are older.", examples=[57])


class ReadWithTold(Told):
    """The model that it was read with."""

    name: str = Field(examples=["tb"])
    version: Version
    fingerprint: str = Field(description="One short name for exactly these weights.", examples=[HASH[:12]])


class ReadingExported(Told):
    """A reading: film, model, person, what was seen, what was corrected and why."""

    notice: str = Field(examples=["Research software, not a medical device."])
    software: str = Field(examples=["medgrape 0.1.0"])
    made_at: When
    film: FilmReadTold
    model: ReadWithTold
    study: StudyTold
    explanation: ExplanationTold
    history: tuple[StepTold, ...] = Field(description="Every step up to the one that is told of.")
