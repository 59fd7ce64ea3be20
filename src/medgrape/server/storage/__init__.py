"""What the server remembers: rows in SQLite or PostgreSQL, and one chain of events that nobody can alter unseen."""
