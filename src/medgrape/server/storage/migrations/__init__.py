"""How the tables came to be what they are, a step at a time."""
