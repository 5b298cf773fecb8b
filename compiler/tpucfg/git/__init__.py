"""The project as it is at a git revision, or in a folder: a spec with what lies beside it."""
