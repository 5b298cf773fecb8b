"""Git revisions of a project, read without a checkout."""
