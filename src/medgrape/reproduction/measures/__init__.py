"""What is measured on a trained run, one file for each kind of job; plain data out."""
