"""Every table and figure of the paper again, and the results on real films."""
