"""The contrastive loss, forwards and backwards, for all concepts at once against loops over them."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from benchmarks.ratio import Ratio, race
from medgrape.config import Config
from medgrape.training.losses import contrastive_loss, masked_similarity

PUBLISHED, AT_BEST = 10.0, 4.0
"""Target speed-up; an optimal loop multiplies the same matrices, so less can be gained."""
CONCEPTS, BATCH = 14, 128
Loss = Callable[[], Tensor]


def bench_losses(rounds: int = 15) -> Iterator[Ratio]:
    """Yield the ratios to an optimal loop and to a loop like the code published with the paper."""
    scene = _Scene(Config())
    ours = scene.at_once
    for theirs, named, target in (
        (scene.published, "one concept at a time, as published", PUBLISHED),
        (scene.looped, "one concept at a time, at its best", AT_BEST),
    ):
        _check_equal(scene.stepped(ours), scene.stepped(theirs))
        timed = race(lambda: scene.stepped(ours), lambda loop=theirs: scene.stepped(loop), rounds)  # type: ignore[misc]
        what = f"contrastive loss and its gradients, K = {CONCEPTS}, batch {BATCH}"
        yield Ratio(what, named, *timed, target, at_most=False)


class _Scene:
    """Vectors of several concepts and all prototypes, with the sizes and constants of the settings."""

    def __init__(self, config: Config) -> None:
        torch.manual_seed(0)
        self.stage, width = config.stages.prototypes, config.model.width
        self.stored = torch.randn(CONCEPTS, config.model.prototypes, width).requires_grad_()
        self.vectors = F.normalize(torch.randn(BATCH, width), dim=-1).requires_grad_()
        self.truth = torch.arange(BATCH) % CONCEPTS

    def stepped(self, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the loss and both gradients."""
        self.stored.grad = self.vectors.grad = None
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        if self.stored.grad is None or self.vectors.grad is None:
            raise RuntimeError("a loss without gradients")
        return value.detach(), self.stored.grad, self.vectors.grad

    def at_once(self) -> Float[Tensor, ""]:
        """Compute the loss as stage 3 does."""
        found = masked_similarity(self.vectors, self._prototypes, self.stage.sharpness, self.stage.mask_above)
        return contrastive_loss(found, self.truth, self.stage.scale, self.stage.margin)

    def looped(self) -> Float[Tensor, ""]:
        """Loop over each concept's vectors and each concept's prototypes, computing nothing twice."""
        everybody = self._prototypes.unbind()
        return self._summed(lambda own, other: self._similarity(own @ everybody[other].T, own, everybody[other]))

    def published(self) -> Float[Tensor, ""]:
        """The same loop, but prototypes are normalised for each pair and cosines computed again for the weights."""

        def similarity(own: Tensor, other: int) -> Tensor:
            weights = (self.stage.sharpness * (own @ self._prototypes[other].T)).softmax(dim=-1)
            return (weights * (own @ self._prototypes[other].T)).sum(dim=-1)

        return self._summed(similarity)

    @property
    def _prototypes(self) -> Float[Tensor, "k m d"]:
        return F.normalize(self.stored, dim=-1)

    def _similarity(self, cosines: Tensor, own: Tensor, prototypes: Tensor) -> Float[Tensor, " n"]:
        unsure = cosines.detach().var(dim=-1, correction=0) > self.stage.mask_above
        if unsure.any():
            cosines = torch.where(unsure.unsqueeze(-1), own @ prototypes.detach().T, cosines)
        return ((self.stage.sharpness * cosines).softmax(dim=-1) * cosines).sum(dim=-1)

    def _summed(self, similarity: Callable[[Tensor, int], Tensor]) -> Float[Tensor, ""]:
        total = torch.zeros(())
        for concept in range(CONCEPTS):
            own = self.vectors[self.truth == concept]
            found = torch.stack([similarity(own, other) for other in range(CONCEPTS)], dim=1)
            raised = F.one_hot(torch.tensor(concept), CONCEPTS) * self.stage.margin
            logits = self.stage.scale * (found + raised)
            total = total + (logits.logsumexp(dim=1) - logits[:, concept]).sum()
        return total / BATCH


def _check_equal(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)
