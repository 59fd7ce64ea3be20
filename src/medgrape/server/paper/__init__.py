"""A reading on paper: A4, for people. Slow to import, so nothing here is before somebody asks for a sheet."""
