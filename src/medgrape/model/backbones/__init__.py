"""Backbones: networks from films to feature maps. Each module registers its backbones with ``@backbone("name")``."""
