"""Models, their findings and prototypes."""

from pydantic import ConfigDict, Field

from medgrape.server.schemas.common import ID, LINE, Asked, BoxAsked, Identifier, Plain, Shares, Told, Version, When


class ModelTold(Told):
    """A model that the server knows."""

    version: Version
    name: str = Field(examples=["tbx11k"])
    in_use: bool = Field(description="Whether films are opened with it unless somebody asks for another.")
    made_here: bool
    parent: Version | None
    what: str = Field(description="How it came about.", examples=["Learnt cavity from 1 film (1 box)."])
    added_at: When
    added_by: str = Field(examples=["server"])


class SafetyRuleTold(Told):
    """From when on the model's safety check warns."""

    calibrated: bool = Field(description="Whether it was learnt from boxes, for every finding that the model knows.")
    origin: str = Field(
        description="Where the thresholds come from, in one sentence.",
        examples=["The thresholds were learnt from boxes on films like these."],
    )
    leads: dict[str, float] = Field(
        description="By how much another finding must lead over each finding.", examples=[{"active_tb": 0.05}]
    )
    gate: float | None = Field(
        description="A leading finding is believed up to this variance; null: always.", examples=[0.0002]
    )
    unbelieved: tuple[str, ...] = Field(description="Findings that no film has taught; they never lead.", examples=[()])


class ModelCard(ModelTold):
    """All there is to say about one."""

    fingerprint: str = Field(description="Of its weights.", examples=["0f3a9c5d7e21"])
    classes: tuple[str, ...] = Field(examples=[("healthy", "sick_non_tb", "active_tb")])
    calibrated: bool = Field(description="Whether the safety check was calibrated on boxes.")
    safety: Plain | None = Field(description="Its thresholds.", examples=[{"eta": 0.05}])
    safety_rule: SafetyRuleTold
    concepts: int = Field(description="How many findings it can point at.", examples=[3])
    prototypes: int = Field(description="Of each finding, discarded ones too.", examples=[100])
    head: str = Field(description="What judges by the prototypes' answers.", examples=["gat"])
    backbone: str = Field(examples=["efficientnet_lite0"])
    input_size: int = Field(description="Side in pixels of the square that a film is stretched to.", examples=[224])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on a film.", examples=[(7, 7)])
    data_set: Plain = Field(
        description="Name and checksum of what it was trained on.", examples=[{"name": "tbx11k", "fingerprint": "0f3a"}]
    )
    metrics: Plain = Field(description="Figures on validation films, from training.", examples=[{"macro_auc": 0.97}])
    changes: tuple[str, ...] = Field(
        description="What was done to it since training, the first change first.",
        examples=[("Learnt cavity from 1 film (1 box).",)],
    )


class ConceptTold(Told):
    """A finding that a model can point at."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    description: str = Field(examples=["Patchy or nodular opacities in the upper lobes, often with cavities."])
    trained: bool = Field(description="Else it was learnt later.")
    judged: bool = Field(description="Whether the classes depend on it.")
    taught_by_films: bool = Field(description="False where only its description is known.")


class PrototypeTold(Told):
    """One of the things that a finding may look like."""

    concept: str = Field(examples=["active_tb"])
    number: int = Field(examples=[3])
    kept: bool
    film: str | None = Field(description="The training film with the patch nearest to it.", examples=["tb-000012-00"])
    exemplar: int | None = Field(description="Where to find its picture: .../exemplars/{exemplar}.png.", examples=[7])
    patch: tuple[int, int] | None = Field(description="Row and column of that patch.", examples=[(2, 4)])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on that film.", examples=[(7, 7)])
    similarity: float | None = Field(description="Of that patch to it.", examples=[0.83])
    absent: float = Field(description="Its usual score on films without the finding.", examples=[0.21])
    typical: float = Field(description="How much it is like the finding's other prototypes.", examples=[0.64])
    raises: str | None = Field(description="The class that gains most by it.", examples=["active_tb"])
    gain: float | None = Field(description="By how much it does.", examples=[0.12])


class Curate(Asked):
    """Discard prototypes, or restore them."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"prototypes": [3, 7]}]})

    prototypes: list[int] = Field(min_length=1, max_length=1000)
    name: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=LINE, description="What to call the new model."
    )


class ExampleAsked(Asked):
    """A film that shows the new finding, perhaps with a box around it."""

    film: Identifier
    box: BoxAsked | None = None


class TeachConcept(Asked):
    """Teach a model one more finding."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "name": "cavity",
                    "description": "Thick-walled lucency in the upper lobe.",
                    "examples": [{"film": ID, "box": {"x1": 310, "y1": 120, "x2": 420, "y2": 260}}],
                }
            ]
        },
    )

    name: str = Field(min_length=1, max_length=63, examples=["cavity"])
    description: str = Field(min_length=1, max_length=1000)
    title: str | None = Field(default=None, min_length=1, max_length=128, pattern=LINE)
    examples: list[ExampleAsked] = Field(default=[], max_length=50)
    model: Version | None = Field(default=None, description="Which model learns it; the one in use unless told.")
    seed: int = Field(default=0, ge=0, le=4294967295)


class ComparedConcept(Told):
    """One finding as two models see it; null where a model does not know it."""

    name: str = Field(examples=["active_tb"])
    scores: tuple[float | None, float | None] = Field(examples=[(0.72, 0.68)])
    strengths: tuple[float | None, float | None] = Field(examples=[(2.1, 1.8)])
    peaks: tuple[Plain | None, Plain | None] = Field(
        description="Where each sees it most, in film pixels.", examples=[({"x": 365, "y": 190}, None)]
    )


class Comparison(Told):
    """Two models on one film that nobody has corrected."""

    film: Identifier
    models: tuple[Version, Version]
    predictions: tuple[Shares, Shares]
    concepts: tuple[ComparedConcept, ...]
