"""What is measured on a trained run, one module for each kind of job."""
