"""Every table and figure of the paper again, on any prepared data set: recipes, jobs, tables, one report."""
