"""What a model is worth on validation films, and what its prototypes do on training films."""

from pydantic import Field

from medgrape.server.schemas.common import HASH, Number, Told, Version, When


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
