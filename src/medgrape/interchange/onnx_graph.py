"""A run's model as one ONNX graph: film in; classes, scores, maps and patches out.

The film may have any size: the graph brings it to the model's own. Everything that is asked of a model afterwards, in
whatever language, is among the outputs.
"""

from typing import TYPE_CHECKING

import torch
from einops import rearrange
from torch import Tensor, nn

from medgrape.interchange.onnx_sizes import with_any_size
from medgrape.interchange.onnx_tracing import traced
from medgrape.model.exported import ATTENTION, LOGITS, SCORES
from medgrape.model.grape import Grape

if TYPE_CHECKING:
    from onnx import ModelProto

FEATURES = "features"
"""What the backbone gives: where int8 ends."""
OUTPUTS = (
    LOGITS, "probabilities", SCORES, "mean_maps", "disagreement_maps", "strongest_maps", "cam_maps", "patches",
    FEATURES, ATTENTION,
)  # fmt: skip


class WholeModel(nn.Module):
    """From greys between 0 and 1 to every output, in the order of ``OUTPUTS``."""

    def __init__(self, model: Grape) -> None:
        super().__init__()
        self.model = model

    def forward(self, films: Tensor) -> tuple[Tensor, ...]:
        """All outputs; heads that do not attend give one less."""
        features = self.model.features(films.unsqueeze(1))
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
    whole, example = WholeModel(model).eval(), torch.rand(2, side, side)
    outputs = OUTPUTS[: len(whole(example))]
    return with_any_size(traced(whole, example, outputs, {0: "batch"}), side)
