"""A progress bar on stderr, for long work at a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

MIN_STEPS: Final = 100
"""Minimum number of steps for a bar; fewer steps finish before the bar can be read."""


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield the function to call after each step; it draws nothing if stderr is not a terminal."""
    if total < MIN_STEPS or not sys.stderr.isatty():
        yield lambda: None
        return
    with typer.progressbar(length=total, label=label, file=sys.stderr) as bar:
        yield lambda: bar.update(1)
