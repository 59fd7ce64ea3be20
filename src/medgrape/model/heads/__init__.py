"""Heads: class logits from the score matrix. Each module registers its heads with ``@head("name")``."""

from torch import nn

from medgrape.model.heads.base import PluginHead
from medgrape.plugins import built_in, get


def build_head(name: str, concepts: int, prototypes: int, classes: int, dropout: float) -> nn.Module:
    """Build the head of that name: one of medgrape, or one of an installed package."""
    factory = built_in("head").get(name)
    if factory is None:
        return PluginHead(get("head", name), concepts, prototypes, classes, dropout)
    module: nn.Module = factory(concepts, prototypes, classes, dropout)
    return module
