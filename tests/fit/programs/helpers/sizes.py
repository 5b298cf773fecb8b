"""A module of a user's program."""

ROWS = 256
