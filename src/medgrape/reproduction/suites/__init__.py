"""The tables, one function for each: which jobs it needs, and what it makes of their results."""
