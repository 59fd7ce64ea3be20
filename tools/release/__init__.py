"""Steps of tools/release_check.py, one per file."""
