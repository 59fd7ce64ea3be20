"""Speed of medgrape, as ratios against a named alternative measured in the same run."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The top of the repository, from which ``python -m benchmarks`` runs."""
