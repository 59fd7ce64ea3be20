"""One file for each resource: typed in, one call, typed out."""
