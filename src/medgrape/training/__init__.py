"""Training: the stages, the loop that runs them, and many processes."""
