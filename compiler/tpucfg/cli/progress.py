"""The progress of compilations, on stderr: what has ended, what runs, and what is left."""

import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final

from tpucfg.cli.tune_output import candidate_name
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.rung_fit import RungFit, fit_key, verdict_text
from tpucfg.fit.schedule import Running
from tpucfg.fit.tune_candidates import Candidate, Choices, Line, step_key
from tpucfg.fit.tune_search import Trial, next_candidate
from tpucfg.fit.worker_process import WorkerProcess
from tpucfg.text_format import format_count, printable

_REFRESH_SECONDS: Final = 0.5
_CLEAR: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it."""


class _StatusLine:
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


class FitProgress(_StatusLine):
    """The number of rungs that have ended, and the phases of those that are compiled."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._ended, self._total = 0, total

    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line about the compilations that run."""
        self.draw(f"{self._ended}/{self._total}", [(item.task.name, item.process) for item in running])

    def ended(self, outcome: Outcome) -> None:
        """Print the line about a rung."""
        self._ended += 1
        seconds = "" if outcome.seconds is None else f" ({outcome.seconds.total:.1f} s)"
        verdict = verdict_text(RungFit(fit_key(outcome.job), outcome.result))
        if outcome.is_known:
            verdict += ", unchanged, as committed" if outcome.is_committed else ", unchanged"
        rung = f"{outcome.job.environment.name} {outcome.job.size}: {verdict}{seconds}"
        self.print_above(f"{self._ended}/{self._total} {rung}")

    def interrupted(self, outcomes: Sequence[Outcome], kept: str) -> None:
        """Print what is left of a run that Ctrl-C has ended."""
        count = sum(outcome.result is not None for outcome in outcomes)
        rest = f"; {kept}; run the command again without --fresh: a step that is kept takes seconds" if count else ""
        self.print_above(f"interrupted: {count} of {self._total} rungs compiled{rest}")


class TuneProgress(_StatusLine):
    """The trials that have ended, and what is left of the search, on stderr."""

    def __init__(self, candidates: Sequence[Candidate], lines: Sequence[Line], choices: Choices, jobs: int) -> None:
        super().__init__()
        self._lines, self._jobs = lines, jobs
        self._trials: dict[str, Trial] = {}
        self._names = {id(each.job): candidate_name(each, choices) for each in candidates}
        self._seconds: list[float] = []
        self._left = self._left_text()
        self.print_above(f"{format_count(len(candidates), 'candidate')} in {format_count(len(lines), 'combination')}")

    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line about the compilations that run."""
        self.draw(f"{self._left}; running", [("", item.process) for item in running])

    def ended(self, trial: Trial) -> None:
        """Print the line about a candidate."""
        self._trials[step_key(trial.candidate)] = trial
        seconds = trial.outcome.seconds
        if seconds and seconds.compile is not None and trial.result and trial.result.fits:
            self._seconds.append(seconds.total)
        self._left = self._left_text()
        verdict = verdict_text(RungFit(fit_key(trial.outcome.job), trial.result)) if trial.result else "failed"
        took = "as kept" if trial.is_kept else "" if seconds is None else f"{seconds.total:.1f} s"
        self.print_above(f"{self._names[id(trial.outcome.job)]}: {verdict}{f' ({took})' if took else ''}; {self._left}")

    def interrupted(self, kept: str) -> None:
        """Print what is left of a search that Ctrl-C has ended."""
        count = sum(trial.result is not None for trial in self._trials.values())
        self.print_above(f"interrupted: {format_count(count, 'result')} {kept}; {self._left}; the same command goes on")

    def _left_text(self) -> str:
        undecided = sum(next_candidate(line, self._trials) is not None for line in self._lines)
        if not undecided:
            return "nothing left"
        # One compilation that fits decides most combinations; refusals take seconds.
        minutes = undecided * sum(self._seconds) / len(self._seconds) / self._jobs / 60 if self._seconds else None
        about = f", about {max(1, round(minutes))} min" if minutes else ""
        return f"{undecided} of {format_count(len(self._lines), 'combination')} left{about}"
