"""The results on real films, from the published folders to the tables."""
