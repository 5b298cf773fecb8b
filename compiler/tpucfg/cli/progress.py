"""Compilations on the command line: each result is kept as it ends, and stderr shows what is left."""

import shutil
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Generic, TypeVar

from tpucfg.cli.interrupts import delayed_interrupts
from tpucfg.cli.tune_output import candidate_name
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.rung_fit import RungFit, fit_key, verdict_text
from tpucfg.fit.schedule import Observer, Running
from tpucfg.fit.tune_candidates import Candidate, Choices, Line, step_key
from tpucfg.fit.tune_search import Trial, next_candidate
from tpucfg.fit.worker_process import WorkerProcess
from tpucfg.refusal import RefusalError
from tpucfg.results.records import explain_error
from tpucfg.text_format import format_count, printable

_Ended = TypeVar("_Ended")
_REFRESH_SECONDS: Final = 0.5
_CLEAR: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it."""


class _Progress(Generic[_Ended]):
    """The last line of stderr, which is drawn again and again; nothing unless stderr is a terminal."""

    @abstractmethod
    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line about the compilations that run."""

    @abstractmethod
    def ended(self, each: _Ended) -> None:
        """Print the line about a compilation."""

    @abstractmethod
    def interrupted(self, kept: str) -> None:
        """Print what is left after Ctrl-C; `kept` is the place of the results, or why they are in none."""

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


class FitProgress(_Progress[Outcome]):
    """The number of rungs that have ended, and the phases of those that are compiled."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._ended, self._compiled, self._total = 0, 0, total

    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line about the compilations that run."""
        self.draw(f"{self._ended}/{self._total}", [(item.task.name, item.process) for item in running])

    def ended(self, each: Outcome) -> None:
        """Print the line about a rung."""
        self._ended += 1
        self._compiled += each.result is not None
        seconds = "" if each.seconds is None else f" ({each.seconds.total:.1f} s)"
        verdict = verdict_text(RungFit(fit_key(each.job), each.result))
        if each.is_known:
            verdict += ", unchanged, as committed" if each.is_committed else ", unchanged"
        self.print_above(f"{self._ended}/{self._total} {each.job.environment.name} {each.job.size}: {verdict}{seconds}")

    def interrupted(self, kept: str) -> None:
        """Print what is left of a run that Ctrl-C has ended."""
        rest = f"; {kept}; run the command again without --fresh: a step that is kept takes seconds"
        self.print_above(
            f"interrupted: {self._compiled} of {self._total} rungs compiled{rest if self._compiled else ''}"
        )


class TuneProgress(_Progress[Trial]):
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

    def ended(self, each: Trial) -> None:
        """Print the line about a candidate."""
        self._trials[step_key(each.candidate)] = each
        seconds = each.outcome.seconds
        if seconds and seconds.compile is not None and each.result and each.result.fits:
            self._seconds.append(seconds.total)
        self._left = self._left_text()
        verdict = verdict_text(RungFit(fit_key(each.outcome.job), each.result)) if each.result else "failed"
        took = "as kept" if each.is_kept else "" if seconds is None else f"{seconds.total:.1f} s"
        self.print_above(f"{self._names[id(each.outcome.job)]}: {verdict}{f' ({took})' if took else ''}; {self._left}")

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


def keep_each(
    path: Path,
    progress: _Progress[_Ended],
    start: Callable[[Observer], Generator[_Ended, None, None]],
    keep: Callable[[Sequence[_Ended]], None],
) -> tuple[list[_Ended], OSError | None]:
    """Run compilations, and keep the result of each as soon as it is complete: a killed run loses no other.

    Args:
        path: The file of the results.
        progress: Prints what has ended and what is left.
        start: Starts the compilations.
        keep: Writes the results of all that have ended; a call repeats what an earlier one could not write.

    Returns:
        What has ended, in this order, and the error if a result could not be written.
    """
    ended: list[_Ended] = []
    write_error: OSError | None = None
    with delayed_interrupts() as check_interrupts:

        def observe(running: Sequence[Running]) -> None:
            check_interrupts()
            progress.observe(running)

        try:
            with closing(start(observe)) as compilations:
                for each in compilations:
                    ended.append(each)
                    progress.ended(each)
                    try:
                        keep(ended)
                        write_error = None
                    except OSError as error:
                        write_error = error
        finally:
            progress.clear()
            if isinstance(sys.exception(), KeyboardInterrupt):
                progress.interrupted(_write_message(path, write_error) if write_error else f"kept in {path}")
    return ended, write_error


def require_written(path: Path, error: OSError | None) -> None:
    """Raise RefusalError for results that could not be written."""
    if error:
        raise RefusalError(_write_message(path, error), f"{explain_error(error)[1]}, and run the command again")


def _write_message(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {explain_error(error)[0]}"
