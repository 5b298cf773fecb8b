"""Dangerous changes, and the cautions that a review must show."""
