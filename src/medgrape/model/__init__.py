"""From patches to a prediction: the parts of GRAPE, and the whole."""
