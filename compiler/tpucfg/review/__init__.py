"""Review of a change: what it does to jobs, infrastructure and access, as values and as a pull request's comment."""
