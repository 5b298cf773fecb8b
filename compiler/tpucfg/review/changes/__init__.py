"""Changes between two revisions as values: jobs, training, environments, resources, access."""
