"""How good a model is, with the trivial answer beside every figure."""
