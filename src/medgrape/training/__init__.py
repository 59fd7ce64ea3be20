"""How a model learns: the four stages, and the variant without stages."""
