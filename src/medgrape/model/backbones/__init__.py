"""Networks that turn a film into a map of features."""
