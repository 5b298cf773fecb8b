"""The progress of `tpucfg tune`, on stderr: what has been compiled, and what is left."""

from collections.abc import Sequence

from tpucfg.cli.status_line import StatusLine
from tpucfg.cli.tune_output import candidate_name
from tpucfg.fit.rung_fit import RungFit, fit_key
from tpucfg.fit.schedule import Running
from tpucfg.fit.tune_candidates import Candidate, Choices, Line, step_key
from tpucfg.fit.tune_search import Trial, next_candidate
from tpucfg.fit.wording import verdict_text
from tpucfg.text_format import format_count


class Progress(StatusLine):
    """The trials that have ended, and what is left of the search, on stderr."""

    def __init__(self, candidates: Sequence[Candidate], lines: Sequence[Line], choices: Choices, jobs: int) -> None:
        super().__init__()
        self._lines, self._choices, self._jobs = lines, choices, jobs
        self._trials: dict[str, Trial] = {}
        self._names = {id(each.job): candidate_name(each, choices) for each in candidates}
        self._seconds: list[float] = []
        self._left = self._left_text()
        combinations = format_count(len(lines), "combination")
        self.print_above(f"{format_count(len(candidates), 'candidate')} in {combinations}")

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
