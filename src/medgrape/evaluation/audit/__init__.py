"""The same figures for subgroups of patients."""
