"""The search of `tpucfg tune`: which candidates are compiled, what the others follow from, and the order of cost.

Memory grows with the micro-batch, in a straight line. So the largest of a line is compiled first; after refusals, which
take seconds and state the memory, the largest that should fit; and then its neighbors, until the largest that fits is
compiled and the next one is refused.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.fit.answers import OF_THE_MODULE, OF_THE_PYTHON, FitFailure
from tpucfg.fit.fit_file import (
    MAX_FILE_BYTES,
    FitFile,
    FitResult,
    read_fit_file,
    result_id,
    result_payload,
    update_fit_file,
)
from tpucfg.fit.forecast import (
    MIN_ROWS,
    StepInterval,
    is_too_fast,
    lower_bound,
    proving_rows,
    ratio_interval,
    sibling_interval,
    step_interval,
)
from tpucfg.fit.launcher import Outcome, compile_rungs
from tpucfg.fit.rung_fit import ProgramFiles
from tpucfg.fit.tune_candidates import Candidate, Line, micro_batch, step_key
from tpucfg.fit.worker_process import Limits, Observer
from tpucfg.paths import grouped
from tpucfg.text_format import format_count, listed

# The file `results/tune.json`: what searches have compiled, so that the next one goes on where this one was.

NAME: Final = "tune.json"
"""The file's name, in the folder of results next to the spec."""
_MAX_RESULTS: Final = 500
_MAX_BYTES: Final = MAX_FILE_BYTES // 2
"""The lines of the file are indented, which adds less than as much again."""


def tune_path(folder: Path) -> Path:
    """Return the path of the results of searches for the specs in a folder."""
    return folder / "results" / NAME


def read_tune_file(path: Path) -> FitFile:
    """Read the results of earlier searches, by rung and inputs."""
    return read_fit_file(path, command="tpucfg tune", key=result_id)


def keep_results(path: Path, results: Iterable[FitResult]) -> None:
    """Add results to the file, which other searches may have written since; a file that is full keeps the new ones.

    Raises:
        OSError: The file cannot be written; its content is unchanged.
    """
    new = by_id(results)
    if new:
        update_fit_file(
            path, lambda: _bounded(new | by_id(read_tune_file(path).results.values()) | new)
        )


def by_id(results: Iterable[FitResult]) -> dict[str, FitResult]:
    """Return results by their rung and inputs."""
    return {result_id(result): result for result in results}


def _bounded(results: dict[str, FitResult]) -> Iterator[FitResult]:
    """Yield the first results, as many as the file takes."""
    size = 0
    for result in islice(results.values(), _MAX_RESULTS):
        size += len(json.dumps(result_payload(result)))
        if size > _MAX_BYTES:
            return
        yield result


# The search.


_MAX_FAILURES: Final = 2
"""Candidates of a line that may crash or hang before the rest of it is left out."""
_MARGIN: Final = 1.25
"""A prediction up to this share of the memory is tried: a refusal takes seconds, and what fits a minute. For a small
micro-batch of examples/chat, the line through two refusals was 20% too high."""
_ENDING: Final = OF_THE_PYTHON | OF_THE_MODULE
"""Failures that every candidate would have."""


class Trial(NamedTuple):
    """A candidate that was tried."""

    candidate: Candidate
    outcome: Outcome
    is_kept: bool = False
    """True for a result of an earlier search with equal inputs, which started no process now."""

    @property
    def result(self) -> FitResult | None:
        """The result; None after a failure."""
        return self.outcome.result

    @property
    def failure(self) -> FitFailure | None:
        """The failure, if there is no result."""
        return self.outcome.failure

    @property
    def micro_batch(self) -> int:
        """Examples of one replica and micro-batch."""
        return int(self.outcome.job.rung.micro_batch)


Trials = Mapping[str, Trial]
"""The candidates that were tried, by their steps."""
Fate = Literal["larger fits", "smaller does not fit", "failures", "not reached"]
"""The reason why a candidate was not compiled."""


def search(
    lines: Sequence[Line],
    current: Candidate,
    known: Sequence[FitResult],
    folder: Path,
    limits: Limits,
    observe: Observer,
) -> Generator[Trial, None, None]:
    """Compile what decides the lines, and yield each trial as it ends. Closing the iterator ends all processes.

    The rung as the spec has it is the first. If it is compiled as an earlier search has left it, by the same versions,
    so are the other candidates whose inputs and files are unchanged.

    Args:
        lines: The lines of candidates.
        current: The rung as the spec has it, which is in one of them.
        known: The results of earlier compilations.
        folder: The spec's folder.
        limits: The limits of the processes.
        observe: Called several times a second with the compilations that run.
    """
    results = list(known)
    trials: dict[str, Trial] = {}
    kept: _Kept | None = None
    while batch := _next_candidates(lines, current, trials):
        repeated = [trial for candidate in batch if kept and (trial := kept.trial(candidate))]
        rest = [
            candidate
            for candidate in batch
            if not any(trial.candidate is candidate for trial in repeated)
        ]
        with closing(_compiled(rest, results, folder, limits, observe)) as compiled:
            for trial in chain(repeated, compiled):
                trials[step_key(trial.candidate)] = trial
                yield trial
                results += [trial.result] if trial.result else []
                if trial.failure and trial.failure.kind in _ENDING:
                    return
        kept = kept or _Kept(by_id(known), trials[step_key(current)].result, ProgramFiles(folder))


def _next_candidates(lines: Sequence[Line], current: Candidate, trials: Trials) -> list[Candidate]:
    if not trials:
        return [current]
    return [candidate for line in lines if (candidate := next_candidate(line, trials))]


class _Kept:
    """The results of earlier searches that count without a process, as long as the current rung's does."""

    def __init__(
        self, known: Mapping[str, FitResult], current: FitResult | None, program: ProgramFiles
    ) -> None:
        kept = known.get(result_id(current)) if current else None
        # Only a compilation shows that the installed packages are the same.
        is_same = kept is not None and current is not None and kept[2:] == current[2:]
        self._known = known if is_same else {}
        self._compiler = current.compiler if current else None
        self._program = program

    def trial(self, candidate: Candidate) -> Trial | None:
        """Return the trial of a candidate whose inputs, files and versions are those of a kept result."""
        result = self._known.get(step_key(candidate))
        if result is None or candidate.job is None or result.compiler != self._compiler:
            return None
        if self._program.hashes(result.files) != result.files:
            return None
        return Trial(candidate, Outcome(candidate.job, result, is_known=True), is_kept=True)


def _compiled(
    candidates: Sequence[Candidate],
    known: Sequence[FitResult],
    folder: Path,
    limits: Limits,
    observe: Observer,
) -> Generator[Trial, None, None]:
    by_job = {id(candidate.job): candidate for candidate in candidates}
    jobs = [candidate.job for candidate in candidates if candidate.job]
    if not jobs:
        return
    file = FitFile(folder, by_id(known))
    with closing(
        compile_rungs(candidates[0].project, jobs, file, folder, limits, observe, are_alike=False)
    ) as outcomes:
        for outcome in outcomes:
            yield Trial(by_job[id(outcome.job)], outcome)


# The choice in a line.


def next_candidate(line: Line, trials: Trials) -> Candidate | None:
    """Return the candidate of a line to compile next; None if the largest that fits is known, or nothing helps."""
    tried = [trials.get(step_key(candidate)) for candidate in line.candidates]
    if sum(trial is not None and trial.result is None for trial in tried) >= _MAX_FAILURES:
        return None
    open_ = [line.candidates[index] for index in _undecided(tried)]
    refused = [trial for trial in tried if trial and trial.result and not trial.result.fits]
    if not open_ or not refused:
        return open_[-1] if open_ else None
    points = [
        (trial.micro_batch, trial.result.memory.used) for trial in tried if trial and trial.result
    ]
    if len(points) == 1:
        return open_[-1]
    (first, least), (last, most) = points[0], points[-1]
    available = refused[0].result.memory.available if refused[0].result else 0
    slope = (most - least) / (last - first)
    predicted = {id(each): least + slope * (micro_batch(each) - first) for each in open_}
    if predicted[id(open_[0])] > available:
        return open_[0]  # none should fit, which a refusal of the smallest proves
    return [each for each in open_ if predicted[id(each)] <= available * _MARGIN][-1]


def _undecided(tried: Sequence[Trial | None]) -> list[int]:
    """Return the positions between the largest that fits and the smallest that does not, but those that failed."""
    fitting = [
        index for index, trial in enumerate(tried) if trial and trial.result and trial.result.fits
    ]
    refused = [
        index
        for index, trial in enumerate(tried)
        if trial and trial.result and not trial.result.fits
    ]
    start, end = max(fitting, default=-1) + 1, min(refused, default=len(tried))
    return [index for index in range(start, end) if tried[index] is None]


def frontier(line: Line, trials: Trials) -> tuple[Trial | None, Trial | None]:
    """Return the trial with the largest micro-batch that fits, and the next larger one that does not."""
    tried = [
        trial
        for candidate in line.candidates
        if (trial := trials.get(step_key(candidate))) and trial.result
    ]
    fitting = [trial for trial in tried if trial.result and trial.result.fits]
    refused = [trial for trial in tried if trial.result and not trial.result.fits]
    return fitting[-1] if fitting else None, refused[0] if refused else None


def fate(line: Line, candidate: Candidate, trials: Trials) -> Fate:
    """Return the reason why a candidate of a line was not compiled."""
    largest, refused = frontier(line, trials)
    if largest and micro_batch(candidate) < largest.micro_batch:
        return "larger fits"
    if refused and micro_batch(candidate) > refused.micro_batch:
        return "smaller does not fit"
    failures = [
        each for each in line.candidates if (trial := trials.get(step_key(each))) and trial.failure
    ]
    return "failures" if len(failures) >= _MAX_FAILURES else "not reached"


# The order of the candidates that fit by the cost of a run, as far as the error of the forecast lets one be known.

_STEPS_WITHOUT_END: Final = 1000
"""The steps that are compared where a run is counted in epochs."""

Unit = Literal["USD", "chip hours"]


class RankedCandidate(NamedTuple):
    """A candidate that fits, with its cost."""

    trial: Trial
    result: FitResult
    interval: StepInterval | None
    """The time of a step: measured, scaled from a measured one, or forecast; None if none is known."""
    bound: Fraction | None
    """The least seconds of a step."""
    per_second: Fraction
    """The price of a second of a step over the whole run, in the unit of the ranking."""
    rank: int | None = None
    """1, and one more for each candidate that is certainly cheaper; None without an interval."""

    @property
    def slice(self) -> Slice:
        """The slice that it runs on."""
        return self.trial.outcome.job.slice

    @property
    def is_measured(self) -> bool:
        """True if a record has the time of the step."""
        return self.interval is not None and not self.interval.basis

    @property
    def costs(self) -> tuple[Fraction, Fraction, Fraction] | None:
        """The least, the middle and the highest cost of the run."""
        if self.interval is None:
            return None
        low, middle, high = self.interval[:3]
        return low * self.per_second, middle * self.per_second, high * self.per_second

    @property
    def least(self) -> Fraction | None:
        """The cost by the bound."""
        return self.bound * self.per_second if self.bound else None


class Ranking(NamedTuple):
    """The candidates of one global batch."""

    batch_size: int
    rows: tuple[RankedCandidate, ...]
    """The cheapest first; without intervals, by the bound."""
    unit: Unit
    is_of_run: bool
    """False if the costs are those of a thousand steps, as the run is counted in epochs."""
    notes: tuple[str, ...]


def rank(
    trials: Sequence[Trial],
    usd_per_hour: Mapping[str, Fraction | None],
    measured: Mapping[str, Fraction],
) -> tuple[Ranking, ...]:
    """Return the candidates that fit in order, for each global batch.

    Args:
        trials: The trials of a search.
        usd_per_hour: The price of each size.
        measured: The seconds of a step of the candidates that a record is of, by their steps.
    """
    fitting = [trial for trial in trials if trial.result and trial.result.fits]
    by_batch = grouped((trial.outcome.job.rung.batch_size, trial) for trial in fitting)
    unpriced = sorted(
        {
            t.outcome.job.slice.generation
            for t in fitting
            if usd_per_hour.get(t.outcome.job.size) is None
        }
    )
    unit: Unit = "chip hours" if unpriced else "USD"
    notes = (
        (f"by chip hours, as the spec has no price of {', '.join(unpriced)} at this capacity",)
        if unpriced
        else ()
    )
    recorded = [(t, seconds) for t in fitting if (seconds := measured.get(step_key(t.candidate)))]
    known = [(t, seconds) for t, seconds in recorded if not _is_too_fast(t, seconds)]
    if wrong := dict.fromkeys(
        t.outcome.job.size for t, seconds in recorded if _is_too_fast(t, seconds)
    ):
        notes = (
            *notes,
            f"not by the record of {listed(list(wrong))}, which is faster than the TPU can be",
        )
    return tuple(
        order_rows(
            batch,
            [row for trial in each if (row := _row(trial, usd_per_hour, known, unit))],
            unit,
            notes,
        )
        for batch, each in by_batch.items()
    )


def _is_too_fast(trial: Trial, seconds: Fraction) -> bool:
    return trial.result is not None and is_too_fast(trial.result, trial.outcome.job.slice, seconds)


def _row(
    trial: Trial,
    usd_per_hour: Mapping[str, Fraction | None],
    known: Sequence[tuple[Trial, Fraction]],
    unit: Unit,
) -> RankedCandidate | None:
    job, result = trial.outcome.job, trial.result
    if result is None:
        return None
    price = usd_per_hour.get(job.size) if unit == "USD" else None
    hours = Fraction(job.rung.train_steps or _STEPS_WITHOUT_END, 3600)
    per_second = (job.slice.chips if price is None else price) * hours
    return RankedCandidate(
        trial, result, _interval(trial, result, known), lower_bound(result, job.slice), per_second
    )


def _interval(
    trial: Trial, result: FitResult, known: Sequence[tuple[Trial, Fraction]]
) -> StepInterval | None:
    """Return the time of a step: its record's, or by a record of its generation, or by published runs."""
    slice_, scaled = trial.outcome.job.slice, None
    for other, seconds in known:
        if other is trial:
            return StepInterval(seconds, seconds, seconds, "", 1)
        if other.result and other.outcome.job.slice.generation == slice_.generation:
            scaled = scaled or sibling_interval(
                result, slice_, other.result, seconds, other.outcome.job.slice
            )
    return scaled or step_interval(result, slice_)


def order_rows(
    batch: int, rows: Sequence[RankedCandidate], unit: Unit, notes: tuple[str, ...] = ()
) -> Ranking:
    """Return the rows of one batch with their ranks, the cheapest first."""
    ranked = [
        row._replace(
            rank=1 + sum(_is_cheaper(other, row) for other in rows) if row.interval else None
        )
        for row in rows
    ]
    ranked.sort(
        key=lambda row: (
            row.rank is None,
            row.rank or 0,
            row.costs[1] if row.costs else row.least or 0,
        )
    )
    is_of_run = all(row.trial.outcome.job.rung.train_steps for row in rows)
    bases = dict.fromkeys(
        row.interval.basis for row in ranked if row.interval and not row.is_measured
    )
    basis = (f"step is by {'; '.join(bases)}",) if bases else ()
    return Ranking(batch, tuple(ranked), unit, is_of_run, (*notes, *basis, *_unproven(ranked)))


def _is_cheaper(row: RankedCandidate, other: RankedCandidate) -> bool:
    """Return True if a candidate is cheaper than another whatever the error of both forecasts."""
    if row.costs is None or other.costs is None or row is other:
        return False
    if row.costs[2] < other.costs[0]:
        return True
    if row.is_measured or other.is_measured or row.slice.generation != other.slice.generation:
        return False
    ratios = pair_ratios(row.slice.generation)
    return len(ratios) >= 2 * MIN_ROWS and row.costs[1] * ratio_interval(ratios)[2] < other.costs[1]


def pair_ratios(generation: str) -> tuple[Fraction, ...]:
    """Return how far the ratio of two forecasts was off, for each pair of published runs of one program; both ways."""
    rows = [row for row in proving_rows() if row.generation == generation]
    pairs = [pair for pair in combinations(rows, 2) if pair[0].title == pair[1].title]
    return tuple(
        ratio
        for first, second in pairs
        for ratio in (first.ratio / second.ratio, second.ratio / first.ratio)
    )


def _unproven(rows: Sequence[RankedCandidate]) -> tuple[str, ...]:
    """Return the sentences about the generations whose candidates have no order among each other."""
    equal = [row for row in rows if row.rank is not None and not row.is_measured]
    generations = dict.fromkeys(row.slice.generation for row in equal)
    return tuple(
        f"order not proven on {name}: {format_count(len(pair_ratios(name)) // 2, 'pair')} of published runs of one "
        f"program, and {MIN_ROWS} are needed; candidates whose intervals overlap are equal"
        for name in generations
        if sum(row.slice.generation == name for row in equal) > 1
        and len(pair_ratios(name)) < 2 * MIN_ROWS
    )
