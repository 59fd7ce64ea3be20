"""From what the server keeps to what it tells."""
