"""The GRAPE model and its parts: from films to evidence and classes."""
