"""Changes between two revisions: their facts, one comparison, one table of what a changed fact means, and grouping."""
