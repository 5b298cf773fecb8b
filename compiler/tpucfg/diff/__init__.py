"""Differences between the configs of two revisions, with flags by name and equal changes grouped."""
