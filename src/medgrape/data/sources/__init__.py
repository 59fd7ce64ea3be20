"""Published data sets, read exactly as they are published, one module each."""
