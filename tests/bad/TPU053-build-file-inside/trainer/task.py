"""The program."""
