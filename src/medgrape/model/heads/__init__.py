"""Heads: from the score matrix to the classes."""
