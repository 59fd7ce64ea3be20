"""Films and models at work: decoding, encoding and the cached features."""
