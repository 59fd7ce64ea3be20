"""Corrections that a person makes to a film's reading, and their effect on evidence and scores."""
