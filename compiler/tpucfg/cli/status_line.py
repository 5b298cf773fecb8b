"""The line on a terminal about the compilations that run, and the lines above it that stay."""

import shutil
import sys
import time
from collections.abc import Iterable
from typing import Final

from tpucfg.fit.worker_process import WorkerProcess
from tpucfg.text_format import printable

_REFRESH_SECONDS: Final = 0.5
_CLEAR: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it."""


class StatusLine:
    """The last line of stderr, which is drawn again and again; nothing unless stderr is a terminal."""

    def __init__(self) -> None:
        self._drawn = 0.0
        self._is_terminal = sys.stderr.isatty()

    def draw(self, head: str, running: Iterable[tuple[str, WorkerProcess]]) -> None:
        """Draw the line with the phase and the seconds of each named process, at most twice a second."""
        if not self._is_terminal or time.monotonic() - self._drawn < _REFRESH_SECONDS:
            return
        self._drawn = time.monotonic()
        parts = (f"{name} {process.phase or 'start'} {process.seconds:.0f} s".lstrip() for name, process in running)
        text = printable(f"{head}: {', '.join(parts)}")
        sys.stderr.write(f"{_CLEAR}{text[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    def print_above(self, text: str) -> None:
        """Print a line that stays, on a terminal or not."""
        self.clear()
        print(printable(text), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
