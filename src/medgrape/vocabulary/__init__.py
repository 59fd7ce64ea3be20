"""Text encoders, and changes of the vocabulary: learn a concept from few examples, discard and restore prototypes."""
