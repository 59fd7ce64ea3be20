"""Build a model and train its stages in order: GRAPE, or a baseline."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.baselines.methods import Baseline, ConceptBottleneck, PipNet, build_baseline, presence
from medgrape.concepts import ConceptSet
from medgrape.config import Config
from medgrape.datasets.cache import in_order
from medgrape.datasets.dataset import Dataset
from medgrape.datasets.statistics import co_occurrence
from medgrape.errors import nearest
from medgrape.model.backbones import Backbone, build_backbone
from medgrape.model.cam import CamHead
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.progress import Track
from medgrape.runs.checkpoint import load_run
from medgrape.training import alternative_stages as alternatives
from medgrape.training.concept_stage import ConceptTraining
from medgrape.training.film_scores import TrainingScores, open_scores
from medgrape.training.films import TrainingError, TrainingFilms
from medgrape.training.head_stage import train_head
from medgrape.training.loop import StageState, TrainingContext, history, run_stage, summary_of_stages
from medgrape.training.preflight import untrained
from medgrape.training.processes import Barrier, alone
from medgrape.training.prototype_stage import PrototypeTraining
from medgrape.training.stage import StageTraining, evaluating, freeze_except
from medgrape.training.stored_features import BATCH, FilmInputs, open_inputs, open_patches, open_vectors
from medgrape.vocabulary.encoders import TextEncoder, open_text_encoder

Module = TypeVar("Module", bound=nn.Module)
LIKE, CUT = "stages.concepts.like", "model.cut"
NOTHING = -20.0  # A logit below any that a trained map reaches


def build_model(config: Config, dataset: Dataset, encoder: TextEncoder | None) -> Grape:
    """Build GRAPE: pretrained backbone, graph from the labels, anchors from the descriptions, other weights random."""
    text = None if encoder is None else encoder.encode([concept.description for concept in dataset.concepts])
    torch.manual_seed(config.seed)  # after the text, so that the encoder does not change the random weights
    cut = _cut(config, dataset.concepts)
    graph = ConceptGraph(torch.from_numpy(co_occurrence(dataset).probability).float(), config.model.tau, cut)
    backbone, background = _build_backbone(config), config.stages.prototypes.background
    model = Grape(backbone, config.model, graph, len(dataset.classes), text, background=background)
    if config.stages.concepts.like:
        _initialise_maps(model.cam, config, dataset.concepts)
    return _channels_last(model)


def _build_backbone(config: Config) -> Backbone:
    backbone = build_backbone(config.backbone)
    backbone.freeze_statistics = not config.stages.concepts.batch_statistics
    return backbone


def _channels_last(model: Module) -> Module:
    """Put weights into the memory format that halves the time of convolutions on a CPU."""
    for weights in model.parameters():
        if weights.ndim == 4 and weights.shape[1] > 1:
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return model


def _cut(config: Config, concepts: ConceptSet) -> list[tuple[int, int]]:
    """Return target and source of every edge that is removed."""
    edges = []
    for edge in config.model.cut:
        source, arrow, target = (part.strip() for part in edge.partition("->"))
        if not arrow:
            raise TrainingError(f"{CUT} takes edges such as 'active_tb -> obsolete_tb', not {edge!r}.")
        edges.append((_index(target, concepts, CUT, "the data set"), _index(source, concepts, CUT, "the data set")))
    return edges


@torch.no_grad()
def _initialise_maps(cam: CamHead, config: Config, concepts: ConceptSet) -> None:
    """Initialise maps with the mean of an earlier run's maps of similar findings."""
    weights = config.backbone.weights
    if not weights or not Path(weights).expanduser().is_dir():
        raise TrainingError(f"{LIKE} names findings of an earlier run; give that run's folder as backbone.weights.")
    earlier = load_run(Path(weights).expanduser()).run
    if earlier.grape.cam.maps.in_channels != cam.maps.in_channels:
        raise TrainingError(f"{LIKE}: {weights} has another backbone, whose maps do not fit this one.")
    mapped = ConceptSet(tuple(earlier.concepts)[: earlier.grape.cam.maps.out_channels])  # later ones have no map
    if config.stages.concepts.epochs == 0:  # maps that are neither initialised nor trained show nothing
        cam.maps.weight.zero_()
        cam.bias.fill_(NOTHING)
    for concept, findings in config.stages.concepts.like.items():
        index = _index(concept, concepts, LIKE, "the data set")
        sources = [_index(name, mapped, LIKE, f"the run {weights}") for name in findings]
        for target, source in zip(cam.maps.parameters(), earlier.grape.cam.maps.parameters(), strict=True):
            target[index] = source[sources].mean(dim=0)


def _index(name: str, concepts: ConceptSet, key: str, where: str) -> int:
    if name not in concepts:
        raise TrainingError(f"{key}: {where} has no concept {name!r}{nearest(name, concepts.names)}.")
    return concepts.index(name)


@dataclass(frozen=True)
class TrainedGrape:
    """A trained model with its scores on the training films."""

    model: Grape
    scores: TrainingScores
    grid: tuple[int, int]
    metrics: dict[str, Any]


@dataclass(frozen=True)
class TrainedBaseline:
    """A trained baseline."""

    model: Baseline
    metrics: dict[str, Any]


class _Pipeline:
    """Context, inputs and metrics of a pipeline."""

    def __init__(
        self, config: Config, films: TrainingFilms, context: TrainingContext, model: Grape | Baseline, track: Track
    ) -> None:
        self._config, self._films, self._context, self._track = config, films, context, track
        self._device = context.fabric.device
        self._inputs = FilmInputs.of(config, films, model.backbone, self._device)
        model.to(self._device)

    def _open(self, stages: tuple[str, ...]) -> None:
        """Start the log, and open the cache of the frozen parts' output."""
        context, views, folder = self._context, self._config.stages.concepts.views, self._context.folder / "early"
        if context.is_rank_zero:
            context.log.begin(history(context.folder, stages))
            self._inputs = open_inputs(self._inputs, views, folder, self._track)
        context.barrier.wait()  # until rank 0 has written the cache
        if not context.is_rank_zero:
            if self._inputs.backbone.frozen_parts > 0 and views > 0:
                context.barrier.wait_until(folder.is_dir, folder)
            self._inputs = open_inputs(self._inputs, views, folder, self._track)

    def _continue_alone(self) -> None:
        """Use this process alone from now on."""
        self._context = replace(self._context, fabric=alone(self._context.fabric), barrier=Barrier())

    def _metrics(self, states: dict[str, StageState], encoder: TextEncoder | None = None) -> dict[str, Any]:
        concepts, name = list(untrained(self._films)), None if encoder is None else encoder.name
        return {"validation": summary_of_stages(states), "untrained_concepts": concepts, "text_encoder": name}


class GrapePipeline(_Pipeline):
    """All stages of GRAPE."""

    def __init__(self, config: Config, films: TrainingFilms, context: TrainingContext, track: Track) -> None:
        self._encoder = open_text_encoder(config.text)
        self.model = build_model(config, films.dataset, self._encoder)
        super().__init__(config, films, context, self.model, track)

    def run(self) -> TrainedGrape | None:
        """Train all stages; return None in a process that only shared the training of the backbone."""
        config, model, context = self._config, self.model, self._context
        is_staged, stages = config.training.order == "staged", config.stages
        self._open(("concepts", "prototypes", "head") if is_staged else ("end_to_end",))
        states = {}
        if not is_staged:
            freeze_except(model, stages.end_to_end.learns)
            training = alternatives.EndToEndTraining(model, self._inputs, config, context.share)
            states["end_to_end"] = run_stage(training, context)
        elif stages.concepts.epochs:
            freeze_except(model, stages.concepts.learns)
            context.seed_torch("first weights of the class maps")
            concepts = ConceptTraining(model, self._inputs, stages.concepts, context.share)
            states["concepts"] = run_stage(concepts, context)
        if not context.is_rank_zero:
            return None
        self._continue_alone()
        if is_staged:
            states["prototypes"] = self._prototypes()
        withheld = set(config.exemplars.withheld)
        showable = torch.tensor([not {film.id, film.patient} & withheld for film in self._films.records])
        folder = context.folder / "scores"
        scores = open_scores(model, self._inputs, stages.head.views, showable, folder, self._track)
        if is_staged:
            states["head"] = train_head(model, scores, self._films, config, self._context)
        context.log.draw()
        return TrainedGrape(model.cpu().eval(), scores, self._inputs.grid, self._metrics(states, self._encoder))

    def _prototypes(self) -> StageState:
        stages, folder = self._config.stages, self._context.folder
        if stages.prototypes.detection:
            patches = open_patches(self.model, self._inputs, folder / "patches", self._track)
            self._inputs = replace(self._inputs, patches=patches)
        vectors = open_vectors(
            self.model, self._inputs, stages.vectors, folder / "vectors", self._track,
            background=stages.prototypes.background,
        )  # fmt: skip
        freeze_except(self.model, stages.prototypes.learns)
        training = PrototypeTraining(self.model, vectors, self._inputs, stages.prototypes)
        if not (folder / "prototypes.safetensors").is_file():  # otherwise the checkpoint has them
            training.place()
        state = run_stage(training, self._context)
        if stages.prototypes.push:
            training.push()
        return state


class BaselinePipeline(_Pipeline):
    """All stages of a baseline."""

    def __init__(self, config: Config, films: TrainingFilms, context: TrainingContext, track: Track) -> None:
        torch.manual_seed(config.seed)
        concepts, classes = len(films.dataset.concepts), len(films.dataset.classes)
        self.model = _channels_last(build_baseline(config, _build_backbone(config), concepts, classes))
        super().__init__(config, films, context, self.model, track)

    def run(self) -> TrainedBaseline | None:
        """Train all stages; return None in a process that only helped."""
        model, stages, share = self.model, self._config.stages, self._context.share
        names = {"black-box": ("black_box",), "cbm": ("cbm",), "pip-net": ("pip_net_parts", "pip_net")}
        self._open(names[self._config.model.method])
        first: StageTraining
        if isinstance(model, PipNet):
            first = alternatives.PipNetPartsTraining(model, self._inputs, stages.pip_net_parts, share)
        elif isinstance(model, ConceptBottleneck):
            first = alternatives.CbmTraining(model, self._inputs, stages.cbm, share)
        else:
            balance = stages.black_box.balance
            first = alternatives.BlackBoxTraining(model, self._inputs, stages.black_box, share, balance=balance)
        states = {first.name: self._train(first)}
        if not self._context.is_rank_zero:
            return None
        if isinstance(model, PipNet):
            self._continue_alone()
            second = alternatives.PipNetTraining(model, self._inputs, stages.pip_net, self._context.share)
            states[second.name] = self._train(second)
            training = self._films.positions("train")
            model.name_parts(self._present(model, training), self._films.labels[training].to(self._device))
        self._context.log.draw()
        return TrainedBaseline(model.cpu().eval(), self._metrics(states))

    def _train(self, training: StageTraining) -> StageState:
        self.model.train().requires_grad_(True)
        self.model.backbone.parts[: self.model.backbone.frozen_parts].requires_grad_(False)
        return run_stage(training, self._context)

    @torch.no_grad()
    def _present(self, model: PipNet, positions: list[int]) -> Float[Tensor, "n parts"]:
        """Presence of each part on films that are not augmented."""
        with evaluating(model):
            batches = [
                presence(model.which_part(model.backbone.forward_trainable(self._inputs.activations(batch, 0))))
                for batch in in_order(positions, BATCH)
            ]
        return torch.cat(batches)
