"""Which parts of other packages a model was made with, and how one is known again that came in another version.

A package may change what its part computes and still take the same weights. So a run also keeps what the model says of
one made-up film, and a model that answers otherwise is refused, whatever the versions say.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import Config
from medgrape.plugins import Kind, find, same_again
from medgrape.runs.manifest import RunError

Records = Mapping[str, Mapping[str, str]]
"""Kind to name, package and version."""
OWN_PARTS, ANSWER = "own_parts", "answer"
CLOSE = 1e-3
"""How far an answer may be from what it was, beside its size: machines round differently."""
_COMPUTED: tuple[Kind, ...] = ("backbone", "head")
"""What reading needs; a text encoder is asked again only when a concept is learnt."""


def parts_used(config: Config) -> dict[str, dict[str, str]]:
    """The parts of installed packages that these settings name."""
    asked: dict[Kind, str] = {"backbone": config.backbone.name}
    if config.model.method == "grape":
        asked |= {"text encoder": config.text.encoder, "head": config.model.head}
    found = {kind: find(kind, name) for kind, name in asked.items()}
    return {kind: part.record for kind, part in found.items() if part is not None}


def refuse_missing(told: Mapping[str, Any]) -> None:
    """Name the package to install, before anything is built."""
    for kind in _COMPUTED:
        if kind in told.get(OWN_PARTS, {}):
            same_again(kind, told[OWN_PARTS][kind])


def needed_parts(parts: Records) -> list[Mapping[str, str]]:
    """Those without which a run cannot be loaded."""
    return [parts[kind] for kind in _COMPUTED if kind in parts]


def keep_parts(parts: Records, model: nn.Module, side: int) -> dict[str, Any]:
    """What a run's description says of them; nothing where there are none."""
    if not parts:
        return {}
    return {OWN_PARTS: {kind: dict(record) for kind, record in parts.items()}, ANSWER: _answer(model, side).tolist()}


def refuse_changed(told: Mapping[str, Any], model: nn.Module, side: int, folder: Path) -> None:
    """A model whose parts compute something else than when the run was saved is another model."""
    parts = needed_parts(told.get(OWN_PARTS, {}))
    if not parts:
        return
    then, now = torch.tensor(told[ANSWER]), _answer(model, side)
    if not (then - now).abs().max() <= CLOSE * max(1.0, float(then.abs().max())):
        wanted = " ".join(sorted({f"{one['distribution']}=={one['version']}" for one in parts}))
        raise RunError(
            f"{folder} answers otherwise with the parts installed here than when it was saved: pip install {wanted}"
        )


@torch.no_grad()
def _answer(model: nn.Module, side: int) -> Float[Tensor, " classes"]:
    """What a model says of a film that anybody can draw again."""
    was_training = model.training
    said = model.eval()(_drawn(side))
    model.train(was_training)
    logits: Tensor = said.logits if hasattr(said, "logits") else said
    return logits[0].float().cpu()


def _drawn(side: int) -> Float[Tensor, "1 1 side side"]:
    steps = torch.linspace(0.0, 1.0, side)
    down, across = steps.view(-1, 1), steps.view(1, -1)
    greys = 0.5 + 0.25 * torch.sin(9.0 * down) * torch.cos(7.0 * across) + 0.2 * (down - across)
    return greys.clamp(0.0, 1.0).view(1, 1, side, side)
