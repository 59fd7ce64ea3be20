"""The concept-mismatch check and its calibration (paper, Module B)."""
