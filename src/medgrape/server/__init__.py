"""The reading room's back end: an API over films, studies, models and the log of all that was done."""
