"""The progress of `tpucfg tune`, on stderr: what has been compiled, and what is left."""

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final

from tpucfg.cli.tune_output import candidate_name
from tpucfg.fit.rung_fit import RungFit, fit_key
from tpucfg.fit.schedule import Running
from tpucfg.fit.tune_candidates import Candidate, Choices, Line, step_key
from tpucfg.fit.tune_search import Trial, next_candidate
from tpucfg.fit.wording import verdict_text
from tpucfg.text_format import format_count, printable

_REFRESH_SECONDS: Final = 0.5
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """The trials that have ended, and what is left of the search, on stderr."""

    def __init__(self, candidates: Sequence[Candidate], lines: Sequence[Line], choices: Choices, jobs: int) -> None:
        self._lines, self._choices, self._jobs = lines, choices, jobs
        self._trials: dict[str, Trial] = {}
        self._names = {id(each.job): candidate_name(each, choices) for each in candidates}
        self._seconds: list[float] = []
        self._drawn = 0.0
        self._is_terminal = sys.stderr.isatty()
        combinations = format_count(len(lines), "combination")
        self._print(f"{format_count(len(candidates), 'candidate')} in {combinations}")

    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line about the compilations that run; nothing unless stderr is a terminal."""
        if not self._is_terminal or time.monotonic() - self._drawn < _REFRESH_SECONDS:
            return
        self._drawn = time.monotonic()
        parts = [f"{item.process.phase or 'start'} {item.process.seconds:.0f} s" for item in running]
        text = printable(f"{self._left()}; running: {', '.join(parts)}")
        sys.stderr.write(f"{_CLEAR}{text[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    def ended(self, trial: Trial) -> None:
        """Print the line about a candidate."""
        self._trials[step_key(trial.candidate)] = trial
        seconds = trial.outcome.seconds
        if seconds and seconds.compile is not None and trial.result and trial.result.fits:
            self._seconds.append(seconds.total)
        verdict = verdict_text(RungFit(fit_key(trial.outcome.job), trial.result)) if trial.result else "failed"
        took = "as kept" if trial.is_kept else "" if seconds is None else f"{seconds.total:.1f} s"
        self._print(f"{self._names[id(trial.outcome.job)]}: {verdict}{f' ({took})' if took else ''}; {self._left()}")

    def interrupted(self, kept: str) -> None:
        """Print what is left of a search that Ctrl-C has ended."""
        count = sum(trial.result is not None for trial in self._trials.values())
        self._print(f"interrupted: {format_count(count, 'result')} {kept}; {self._left()}; the same command goes on")

    def clear(self) -> None:
        """Remove the line about the compilations that run."""
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _left(self) -> str:
        undecided = sum(next_candidate(line, self._trials) is not None for line in self._lines)
        if not undecided:
            return "nothing left"
        # One compilation that fits decides most combinations; refusals take seconds.
        minutes = undecided * sum(self._seconds) / len(self._seconds) / self._jobs / 60 if self._seconds else None
        about = f", about {max(1, round(minutes))} min" if minutes else ""
        return f"{undecided} of {format_count(len(self._lines), 'combination')} left{about}"

    def _print(self, text: str) -> None:
        self.clear()
        print(printable(text), file=sys.stderr, flush=True)
