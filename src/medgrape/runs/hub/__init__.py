"""Runs on a model hub: a folder as a hub keeps it, a model card written from the run, and bringing both there."""

from medgrape.runs.hub.card import card_of
from medgrape.runs.hub.publish import Packed, Publishing, Pushed, pack, push

__all__ = ["Packed", "Publishing", "Pushed", "card_of", "pack", "push"]
