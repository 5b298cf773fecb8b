"""Configs: a job's message, its text, the check of both, and the files they are written to."""
