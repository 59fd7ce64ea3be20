"""All findings that can be drawn, by name; each registers with its contrast, zone and change of the anatomy."""

from medgrape.phantoms.findings import nih, tuberculosis
from medgrape.phantoms.findings.base import FINDINGS

__all__ = ["FINDINGS", "nih", "tuberculosis"]
