"""Rules about a project and its planned rungs, one module per subject."""
