"""A run's model as one ONNX graph: film in; classes, scores, maps and patches out.

The film may have any size: the graph brings it to the model's own. Everything that is asked of a model afterwards, in
whatever language, is among the outputs.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from medgrape.model.exported import ATTENTION, FILMS, LOGITS, SCORES
from medgrape.model.grape import Grape

if TYPE_CHECKING:
    from onnx import ModelProto

FEATURES = "features"
"""What the backbone gives: where int8 ends."""
OPSET = 20
OUTPUTS = (
    LOGITS, "probabilities", SCORES, "mean_maps", "disagreement_maps", "strongest_maps", "cam_maps", "patches",
    FEATURES, ATTENTION,
)  # fmt: skip
_LARGEST = 2**20
"""Of any size: films in a batch, pixels of a side."""


class WholeModel(nn.Module):
    """From greys between 0 and 1 to every output, in the order of ``OUTPUTS``."""

    def __init__(self, model: Grape, side: int) -> None:
        super().__init__()
        self.model, self.side = model, side

    def forward(self, films: Tensor) -> tuple[Tensor, ...]:
        """All outputs; heads that do not attend give one less."""
        seen = F.interpolate(films.unsqueeze(1), size=(self.side, self.side), mode="bilinear", antialias=True)
        features = self.model.features(seen)
        patches = self.model.projector.patches(features)
        scores, *maps = self._compared(patches)
        answer = self.model.judge(scores)
        outputs = (answer.logits, answer.probabilities, scores, *maps, self.model.cam(features), patches, features)
        return outputs if answer.attention is None else (*outputs, answer.attention)

    def _compared(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scores, then mean, disagreement and strongest maps, all from one product of patches and prototypes.

        Unlike ``evidence.py``, all concepts at once: few large steps suit a runtime that pays for each step.
        """
        atlas = self.model.atlas
        flat = rearrange(patches, "b d h w -> b d (h w)")
        similarity = rearrange(
            rearrange(atlas.prototypes, "k m d -> (k m) d") @ flat, "b (k m) p -> b k m p", k=len(atlas.kept)
        )
        shares = (atlas.kept / atlas.kept.sum(dim=1, keepdim=True)).unsqueeze(1)
        mean = shares @ similarity
        disagreement = shares @ (similarity - mean).square()
        strongest = (similarity + torch.where(atlas.kept, 0.0, -torch.inf).unsqueeze(-1)).amax(dim=2)
        maps = (mean.squeeze(2), disagreement.squeeze(2), strongest)
        high = patches.shape[-2]
        mean, disagreement, strongest = (rearrange(one, "b k (h w) -> b k h w", h=high) for one in maps)
        return similarity.amax(dim=-1), mean, disagreement, strongest


@torch.no_grad()
def build_graph(model: Grape, side: int) -> "ModelProto":
    """The graph with all weights in it; the number of films and their size are free."""
    whole = WholeModel(model, side).eval()
    shape = {0: torch.export.Dim("batch", max=_LARGEST)}
    shape |= {place: torch.export.Dim(name, max=_LARGEST) for place, name in ((1, "height"), (2, "width"))}
    example = torch.rand(2, side + 3, side + 5)
    names = OUTPUTS[: len(whole(example))]
    with quiet():
        program = torch.onnx.export(
            whole, (example,), dynamo=True, dynamic_shapes=(shape,), input_names=[FILMS], output_names=names,
            opset_version=OPSET, verbose=False,
        )  # fmt: skip
    assert program is not None  # noqa: S101 (it is with dynamo=True)
    return program.model_proto


@contextmanager
def quiet() -> Iterator[None]:
    """Exporters remark on packages that are not there and on their own future; what fails raises."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(level)
