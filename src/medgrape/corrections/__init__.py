"""What a person may state about a film, and what it does to evidence and scores."""
