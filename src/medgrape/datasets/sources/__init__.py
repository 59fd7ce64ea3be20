"""Published data sets and annotation files, one module for each layout."""
