"""The tables: which jobs each needs, and what it makes of their results."""
