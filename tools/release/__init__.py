"""What a release is looked at with: a step to a file, all of them run by tools/release_check.py."""
