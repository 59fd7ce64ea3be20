"""Runs on a model hub: download, model card, and publication."""

from medgrape.runs.hub.card import card_of
from medgrape.runs.hub.publish import Packed, Publishing, Pushed, pack, push

__all__ = ["Packed", "Publishing", "Pushed", "card_of", "pack", "push"]
