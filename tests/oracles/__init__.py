"""The paper's equations as slow loops over plain numbers, written from the text and from nothing else."""
