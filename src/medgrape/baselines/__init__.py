"""Other people's ways to the same end, to be compared with."""
