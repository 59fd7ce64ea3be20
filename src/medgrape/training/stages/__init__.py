"""The training stages, one module each."""
