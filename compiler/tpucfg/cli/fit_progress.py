"""The progress of `tpucfg fit` on stderr: a line for each rung that ends, and at a terminal one for those that run."""

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final, Self

from tpucfg.fit.launcher import Outcome
from tpucfg.fit.result import FitKey
from tpucfg.fit.rung_fit import RungFit, fit_key
from tpucfg.fit.schedule import Running
from tpucfg.fit.wording import verdict_text
from tpucfg.text_format import listed, printable

_REFRESH_SECONDS: Final = 0.5
_CLEAR: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it."""


class FitProgress:
    """The number of rungs that have ended, and the phases of those that are compiled."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0
        self._drawn = 0.0
        self._is_terminal = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line about the compilations that run; nothing unless stderr is a terminal."""
        if not self._is_terminal or time.monotonic() - self._drawn < _REFRESH_SECONDS:
            return
        self._drawn = time.monotonic()
        parts = [f"{item.task.name} {item.process.phase or 'start'} {item.process.seconds:.0f} s" for item in running]
        text = printable(f"{self._ended}/{self._total}: {', '.join(parts)}")
        sys.stderr.write(f"{_CLEAR}{text[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    def ended(self, outcome: Outcome) -> None:
        """Print the line about a rung."""
        self._ended += 1
        self._clear()
        seconds = "" if outcome.seconds is None else f" ({outcome.seconds.total:.1f} s)"
        verdict = verdict_text(RungFit(fit_key(outcome.job), outcome.result))
        if outcome.is_known:
            verdict += ", unchanged, as committed" if outcome.is_committed else ", unchanged"
        name = f"{outcome.job.environment.name} {outcome.job.size}"
        print(printable(f"{self._ended}/{self._total} {name}: {verdict}{seconds}"), file=sys.stderr, flush=True)

    def removed(self, keys: Sequence[FitKey], path: str) -> None:
        """Print which results have left the file: a second spec with the same name may have written them."""
        if keys:
            self._clear()
            rungs = listed([f"{key.environment} {key.size}" for key in keys])
            reason = f"this spec, {keys[0].name}, has no training step for {'it' if len(keys) == 1 else 'them'}"
            advice = f"another spec in this folder needs a name other than {keys[0].name} to keep its results"
            print(printable(f"removed from {path}: {rungs}: {reason}; {advice}"), file=sys.stderr, flush=True)

    def interrupted(self, outcomes: Sequence[Outcome], kept: str) -> None:
        """Print what is left of a run that Ctrl-C has ended."""
        self._clear()
        count = sum(outcome.result is not None for outcome in outcomes)
        results = f"{count} of {self._total} rungs compiled"
        rest = f"; {kept}; run the command again without --fresh: a step that is kept takes seconds" if count else ""
        print(printable(f"interrupted: {results}{rest}"), file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
