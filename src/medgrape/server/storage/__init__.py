"""Tables, connections and migrations of the database, and the event log."""
