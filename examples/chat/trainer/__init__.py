"""The program of the example: a decoder-only transformer, and its training step."""
