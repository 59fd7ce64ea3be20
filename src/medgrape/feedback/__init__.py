"""A film and a person: opened once, asked many times."""
