"""A bar on stderr for what takes long, where somebody looks at it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

_WORTH_IT: Final = 100
"""Steps: fewer are done before a bar can be read."""


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Yields the function to call after each step. Draws nothing where stderr is no terminal."""
    if total < _WORTH_IT or not sys.stderr.isatty():
        yield lambda: None
        return
    with typer.progressbar(length=total, label=label, file=sys.stderr) as bar:
        yield lambda: bar.update(1)
