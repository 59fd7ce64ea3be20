"""What medgrape evaluate and medgrape audit found out about a model."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from medgrape.server.schemas.common import Number, Told

Figure = Annotated[
    Annotated[float, Field(allow_inf_nan=False)] | None,
    BeforeValidator(lambda value: None if isinstance(value, str) else value),  # "nan", where a figure is not defined
    Field(description="null where it is not defined.", examples=[0.81]),
]
Lower = Annotated[Figure, Field(description="Where its 95 % interval begins; null: there is none.", examples=[0.74])]
Upper = Annotated[Figure, Field(description="Where it ends.", examples=[0.87])]


class Share(Told):
    """A share with its 95 % interval, patients drawn again."""

    value: Number = Field(examples=[0.62])
    low: Lower
    high: Upper


class FilmsCounted(Told):
    """What the figures rest on."""

    read: int = Field(examples=[593])
    refused: int = Field(examples=[0])
    patients: int = Field(examples=[446])
    with_boxes: int = Field(examples=[120])


class ClassTold(Told):
    """One class against all others."""

    name: str = Field(examples=["active_tb"])
    support: int = Field(description="Films that are of this class.", examples=[120])
    precision: Figure
    recall: Figure
    f1: Figure
    auc: Figure


class MajorityTold(Told):
    """Always naming the class that is most frequent in training."""

    answer: str = Field(examples=["healthy"])
    macro_f1: Number = Field(examples=[0.21])
    accuracy: Number = Field(examples=[0.46])


class ClassificationTold(Told):
    """Whether the class is right."""

    macro_f1: Share
    accuracy: Number = Field(examples=[0.84])
    macro_auc: Figure
    majority: MajorityTold | None = Field(description="null where the data set has no training films.")
    classes: tuple[ClassTold, ...]


class PointingTold(Told):
    """How often the highest point of a finding's mean map lies in a box of it, by film and finding."""

    pairs: int = Field(examples=[160])
    mean: Share
    chance: Number = Field(description="What a random point gets.", examples=[0.06])
    fixed: Figure = Field(
        description="What one fixed point for each finding gets; null where training films have no box.", examples=[0.3]
    )


class ConceptPointingTold(Told):
    """The same for one finding."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    pointing: PointingTold | None = Field(description="null where no film that was read has a box of it.")


class WarningsTold(Told):
    """How often a safety check warns."""

    title: str = Field(examples=["calibrated to 0.1 false alarms"])
    caught: Share | None = Field(description="Of wrong claims.")
    false_alarms: Share | None = Field(description="Of right claims.")
    balanced: Share | None = Field(description="A check that looks at no film gets 0.5.")


class SafetyTold(Told):
    """What the model's safety check is worth, with boxes that are mistaken on purpose."""

    boxes: int = Field(examples=[160])
    own: WarningsTold
    majority: WarningsTold | None = Field(description="One that always gives the commonest finding of training boxes.")


class ReportTold(Told):
    """What medgrape evaluate found."""

    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    its_own: bool = Field(description="Whether the model was trained on that very data set.")
    films: FilmsCounted
    known_films: int = Field(description="How many of them the model has learnt from or was chosen on.", examples=[0])
    headline: tuple[str, ...] = Field(examples=[("Macro-F1 0.81; always healthy would get 0.21.",)])
    warnings: tuple[str, ...] = Field(examples=[()])
    classification: ClassificationTold
    pointing: PointingTold | None = Field(description="null where no film that was read has a box.")
    concepts: tuple[ConceptPointingTold, ...]
    safety: SafetyTold | None = Field(description="null where no film that was read has a box.")


class MeasureTold(Told):
    """What is measured in every group."""

    name: str = Field(examples=["macro_f1"])
    title: str = Field(examples=["macro-F1"])
    best: Literal["high", "low", "zero"]
    compared: bool = Field(description="Whether a small group may be laid beside a large one.")


class BlindTold(Told):
    """What somebody gets on the same films who does not look at them."""

    name: str = Field(examples=["majority"])
    title: str = Field(examples=["always “healthy”"])
    value: Figure


class GroupFigureTold(Told):
    """One figure in one group."""

    measure: str = Field(examples=["macro_f1"])
    patients: int = Field(description="On how many it rests.", examples=[84])
    too_few: bool = Field(description="Whether those are too few: then nothing below is told.")
    value: Figure
    low: Lower
    high: Upper
    trivial: tuple[BlindTold, ...]
    rest: Figure = Field(description="The same figure in all other films; null: not compared.", examples=[0.79])
    flagged: bool = Field(description="Whether the interval of the gap to all other films excludes zero.")
    still_flagged: bool = Field(description="Also after Holm's correction for all gaps.")


class GroupTold(Told):
    """All figures in one group."""

    name: str = Field(examples=["PA"])
    films: int = Field(examples=[508])
    patients: int = Field(examples=[389])
    figures: tuple[GroupFigureTold, ...]


class AuditTableTold(Told):
    """The groups of one attribute, or of several crossed."""

    title: str = Field(examples=["view"])
    groups: tuple[GroupTold, ...]


class AuditTold(Told):
    """What medgrape audit found."""

    split: str = Field(examples=["test"])
    data_set: str = Field(examples=["tbx11k"])
    fewest_patients: int = Field(description="Fewer are too few.", examples=[10])
    headline: tuple[str, ...] = Field(examples=[("13 gaps were judged: 1 has an interval that excludes zero.",)])
    measures: tuple[MeasureTold, ...]
    whole: GroupTold
    tables: tuple[AuditTableTold, ...]
    flagged: tuple[str, ...] = Field(description="Each flagged gap as a sentence.", examples=[()])
    warnings: tuple[str, ...] = Field(examples=[()])


class EvaluationTold(Told):
    """What lies beside a run; null where nothing of this very model does."""

    report: ReportTold | None
    audit: AuditTold | None
    how: str | None = Field(
        description="How to make what is missing; null: nothing is.",
        examples=["No audit of this model lies beside its run: medgrape audit RUN --data DIR."],
    )
