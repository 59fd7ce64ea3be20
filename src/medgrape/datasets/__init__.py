"""Prepared data sets: sources, splits, checks, the cache and augmentation."""
