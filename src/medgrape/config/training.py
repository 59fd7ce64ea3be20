"""How the model learns: every stage as data."""

from typing import Annotated, Literal

from pydantic import Field

from medgrape.config.base import Listed, Names, Settings

Seeing = Literal["backbone", "cam"]
Comparing = Literal["projector", "atlas", "anchors"]
Judging = Literal["head"]
Weight = Annotated[float, Field(ge=0)]
SomeNames = Annotated[Names, Field(min_length=1)]


class Schedule(Settings):
    """What every stage that learns is told. AdamW with a cosine schedule in each."""

    epochs: Annotated[int, Field(ge=1)] = 20
    learning_rate: Annotated[float, Field(gt=0)] = 1e-4
    weight_decay: Weight = 1e-4
    batch: Annotated[int, Field(ge=1)] = 128
    """Films (in stage 3 vectors) that are seen at once, by all processes together."""
    accumulate: Annotated[int, Field(ge=1)] = 1
    """Batches to a step: their gradients are averaged before the weights move, as if ``batch`` were so many times as
    large, in the memory of one."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the steps in which the rate rises from nothing."""
    clip: Weight = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    choose: Literal["best", "last"] = "best"
    """Which epoch is kept: the best on validation films, or the last, for where those are too few to choose by."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Stop after so many epochs without a better validation figure; 0 never stops early."""


class ConceptStage(Schedule):
    """Stage 1: backbone and CAM head learn which findings a film shows."""

    learns: Annotated[tuple[Seeing, ...], Listed] = ("backbone", "cam")
    """All else is frozen: no gradient, eval mode, no dropout."""
    epochs: Annotated[int, Field(ge=0)] = 30
    """0: nothing learns here, and the CAM stays as ``like`` lets it begin."""
    like: dict[str, SomeNames] = Field(default_factory=dict)
    """Concept to findings of the run in ``backbone.weights``: the concept's map begins as the mean of theirs."""
    pooling: Literal["mean", "log-sum-exp", "top"] = "mean"
    """How a map of logits becomes one: the paper averages; log-sum-exp lets a small lesion speak; ``top`` averages the
    highest tenth."""
    sharpness: Annotated[float, Field(gt=0)] = 5.0
    """Of log-sum-exp: 0 would be the mean, infinity the maximum."""
    balance: bool = True
    """Weigh rare concepts up: positives by the root of absent over present films."""
    resample: bool = False
    """Films with a rare concept come up more often, by the root of its rarity, and others not in every epoch."""
    box_weight: Weight = 0.0
    """Of the loss that compares each patch with the boxes, where a film has them."""
    box_rivals: bool = True
    """False: inside the boxes of one concept the others learn nothing from ``box_weight``, neither that they are there
    nor that they are not."""
    telling_weight: Weight = 0.0
    """Of the loss that asks which of the boxed concepts a box shows: the map of its own must lead inside it."""
    class_weight: Weight = 0.0
    """Of a loss that also asks the features for the class, through maps that are thrown away afterwards."""
    batch_statistics: bool = True
    """False keeps the batch norms' running statistics as they came, so a batch may be small or split."""
    augment: bool = True
    """Turn, shift, zoom and change the greys of films by chance."""
    mirror: bool = False
    """Augmented views are mirror images half of the time: more films, but the heart is then on either side."""
    views: Annotated[int, Field(ge=0)] = 4
    """Augmented views of each film that are kept on disk where the first parts of the backbone are frozen; 0 keeps
    nothing: every epoch has views of its own, and the frozen parts run each time."""


class VectorStage(Settings):
    """Stage 2: concept vectors of positive films, from the frozen backbone."""

    boxes: bool = False
    """Look inside the boxes where a film has them, instead of where the CAM looks, and outside them for ordinary
    tissue. False: boxes teach this stage and the next nothing."""
    inside: Annotated[int, Field(ge=0)] = 0
    """Patches of each box that are vectors of their own, drawn by lot, beside the one for the whole box; where there is
    no box to look into, those around which the CAM is highest."""
    normal: Names = ()
    """Classes whose films show nothing: ordinary tissue is taken from these and from beside a finding, and so a film
    that is ill in another way may still look different from a healthy one. Empty: from every film."""
    ordinary: Annotated[int, Field(ge=1)] = 4
    """Patches of ordinary tissue from each film: half of them those that the CAM likes best, the others by lot."""


class PrototypeStage(Schedule):
    """Stage 3: projector, prototypes and text projection."""

    learns: Annotated[tuple[Comparing, ...], Listed] = ("projector", "atlas", "anchors")
    """All else is frozen: no gradient, eval mode, no dropout."""
    scale: Annotated[float, Field(gt=0)] = 10.0
    """lambda of the contrastive loss."""
    sharpness: Annotated[float, Field(gt=0)] = 5.0
    """gamma of the soft assignment."""
    margin: float = 0.1
    """delta, on the true concept's logit alone."""
    alignment: Weight = 0.1
    """Of the loss that pulls prototypes to their text anchor; without a text encoder there is none."""
    mask_above: Annotated[float, Field(gt=0)] = 0.05
    """theta_U: a sample gives no gradient to prototypes that disagree about it by more."""
    dispersion: Weight = 0.0
    """Of the loss that keeps a concept's prototypes apart."""
    balance: bool = True
    """Weigh vectors of rare concepts up, by the root of their rarity."""
    background: bool = False
    """One more set of prototypes for ordinary tissue, in the contrastive sum but in no output."""
    push: bool = False
    """In the end every prototype becomes the nearest vector of a training film that shows its concept."""
    pointing: Weight = 0.0
    """Of the loss that wants a concept's mean map higher at its findings than at ordinary tissue; needs background."""
    detection: Weight = 0.0
    """Of the loss that wants a concept's mean map to peak higher on films that show it than on films that do not. For
    it the features of every patch are kept on disk while the stage learns."""


class HeadStage(Schedule):
    """Stage 4: the head, on score matrices of the frozen rest."""

    learns: Annotated[tuple[Judging, ...], Listed] = ("head",)
    """All else is frozen: no gradient, eval mode, no dropout."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.05
    balance: bool = True
    """Weigh rare classes up, by the root of their rarity."""
    views: Annotated[int, Field(ge=1)] = 1
    """Score matrices for each training film: the film itself, and augmented views beyond the first."""


class EndToEndStage(Schedule):
    """The variant without stages: the sum of the three losses, everything learns."""

    learns: Annotated[tuple[Seeing | Comparing | Judging, ...], Listed] = (
        "backbone", "cam", "projector", "atlas", "anchors", "head",
    )  # fmt: skip
    """All else is frozen: no gradient, eval mode, no dropout."""
    epochs: Annotated[int, Field(ge=1)] = 70


class BlackBoxStage(Schedule):
    """The plain backbone: one linear layer on the mean of its patches, everything learns."""

    epochs: Annotated[int, Field(ge=1)] = 30
    balance: bool = True
    """Weigh rare classes up, by the root of their rarity."""


class CbmStage(BlackBoxStage):
    """The concept bottleneck model, learnt jointly: findings first, classes from nothing but these."""

    concept_weight: Weight = 1.0
    """lambda: of the loss of the findings, beside that of the classes."""


class PipNetPartsStage(Schedule):
    """PIP-Net's first phase: patches learn to be one of few parts, without any label."""

    epochs: Annotated[int, Field(ge=1)] = 10
    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    batch: Annotated[int, Field(ge=2)] = 64
    parts: Annotated[int, Field(ge=0)] = 0
    """Prototypes; 0: one for each feature of the backbone, as published."""
    presence: Weight = 5.0
    """Of the tanh loss, that every part turns up somewhere in a batch. The alignment's weight rises from 0 to 1."""


class PipNetStage(BlackBoxStage):
    """PIP-Net's second phase: few positive weights from parts to classes, and the parts learn on."""

    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    batch: Annotated[int, Field(ge=2)] = 64
    alignment: Weight = 5.0
    """Of the loss that wants a patch to be the same part in two views of a film."""
    presence: Weight = 2.0
    """Of the tanh loss."""
    class_weight: Weight = 2.0
    """Of the classes' loss."""
    hold: Annotated[int, Field(ge=0)] = 3
    """Epochs at the start in which the weights to the classes learn alone."""


class StageSettings(Settings):
    """All stages; ``model.method`` and ``training.order`` say which run."""

    concepts: ConceptStage = ConceptStage()
    vectors: VectorStage = VectorStage()
    prototypes: PrototypeStage = PrototypeStage()
    head: HeadStage = HeadStage()
    end_to_end: EndToEndStage = EndToEndStage()
    black_box: BlackBoxStage = BlackBoxStage()
    cbm: CbmStage = CbmStage()
    pip_net_parts: PipNetPartsStage = PipNetPartsStage()
    pip_net: PipNetStage = PipNetStage()


class TrainingSettings(Settings):
    """Where and in which order."""

    order: Literal["staged", "end-to-end"] = "staged"
    precision: Literal["fp32", "bf16"] = "fp32"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    processes: Annotated[int, Field(ge=1)] = 1
    """One for each device; on a CPU, one for each share of its cores."""
    threads: Annotated[int, Field(ge=0)] = 0
    """Of each process, on a CPU; 0 takes what there is."""


class ExemplarSettings(Settings):
    """The training films that a run carries along to show what its prototypes remind of."""

    show: bool = True
    """False: the run holds no picture of any training film."""
    withheld: Names = ()
    """Films or patients that are never shown."""
