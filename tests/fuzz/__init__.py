"""Fuzzing: valid inputs are mutated at random, and every command has to handle them.

`python -m fuzz` (`make fuzz`) runs many inputs in subprocesses; `tests/test_fuzz.py` runs a few within the test suite.
An input depends only on a seed and its number, so that every run can be repeated.
"""
