"""Films and models at work: decoding, encoding once, and everything that is asked afterwards."""
