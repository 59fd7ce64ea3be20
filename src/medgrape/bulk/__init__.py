"""Reading many films: on the processes of this machine or on a Ray cluster."""
