"""Runs on a model hub: a folder as a hub keeps it, a model card written from the run, and bringing both there."""

from medgrape.hub.card import card_of
from medgrape.hub.folder import Packed, Publishing, pack
from medgrape.hub.pushing import Pushed, push

__all__ = ["Packed", "Publishing", "Pushed", "card_of", "pack", "push"]
