"""Parts that a ward wrote for itself."""
