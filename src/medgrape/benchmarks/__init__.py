"""How fast things are, as ratios against a named alternative measured in the same run."""
