"""Where much work runs: the processes of this machine, or a Ray cluster."""
