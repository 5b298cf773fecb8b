"""Running of many inputs in this process, and the tally of their results."""

import json
import os
import resource
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple, Self

from fuzz.cases import Case
from fuzz.kinds import check, make
from fuzz.shell import HungError, Shell, raising_internal_errors


class Failure(NamedTuple):
    """An input that failed, with the traceback."""

    case: Case
    why: str


class Tally(NamedTuple):
    """Results of some inputs."""

    inputs: Counter[str]
    """Number of inputs by kind."""
    commands: int
    statuses: Counter[int]
    ids: Counter[str]
    """Number of findings by id."""
    slowest: float
    """Processor seconds of the slowest command."""
    slowest_case: Case | None
    peak: float
    """Peak memory of the process, in megabytes."""
    failures: tuple[Failure, ...]

    def to_json(self) -> str:
        """Return the tally as JSON, for the parent process."""
        slowest = self.slowest_case and self.slowest_case.to_json()
        failures = [(case.to_json(), why) for case, why in self.failures]
        return json.dumps(self._replace(slowest_case=slowest, failures=failures))  # type: ignore[arg-type] # as JSON

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the tally from another process's JSON."""
        inputs, commands, statuses, ids, slowest, slowest_case, peak, failures = json.loads(text)
        return cls(
            Counter(inputs),
            commands,
            Counter({int(status): count for status, count in statuses.items()}),
            Counter(ids),
            slowest,
            Case.from_json(slowest_case) if slowest_case else None,
            peak,
            tuple(Failure(Case.from_json(case), why) for case, why in failures),
        )


def tally_of_failure(failure: Failure) -> Tally:
    """Return the tally of one input that ended its process."""
    return Tally(Counter([failure.case.kind]), 0, Counter(), Counter(), 0.0, None, 0.0, (failure,))


def merge(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of all tallies."""
    total = Tally(Counter(), 0, Counter(), Counter(), 0.0, None, 0.0, ())
    for tally in tallies:
        slower = tally if tally.slowest > total.slowest else total
        total = Tally(
            total.inputs + tally.inputs,
            total.commands + tally.commands,
            total.statuses + tally.statuses,
            total.ids + tally.ids,
            slower.slowest,
            slower.slowest_case,
            max(total.peak, tally.peak),
            total.failures + tally.failures,
        )
    return total


def scratch() -> str | None:
    """Return a folder in memory, if there is one: a disk would take most of the time."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - only used for a folder with a random name


def run_all(cases: Iterable[Case]) -> Tally:
    """Run all inputs and return their tally."""
    shell, inputs, failures = Shell(), Counter[str](), list[Failure]()
    slowest_case, slowest = None, 0.0
    with tempfile.TemporaryDirectory(dir=scratch()) as folder, raising_internal_errors():
        for case in cases:
            inputs[case.kind] += 1
            if why := traceback_of(case, Path(folder), shell):
                failures.append(Failure(case, why))
            if shell.slowest > slowest:
                slowest_case, slowest = case, shell.slowest
    return Tally(
        inputs,
        shell.commands,
        shell.statuses,
        shell.ids,
        slowest,
        slowest_case,
        peak_megabytes(),
        tuple(failures),
    )


def traceback_of(case: Case, folder: Path, shell: Shell) -> str:
    """Run one input; return the traceback of a failure, or an empty text."""
    try:
        with chdir(case.lay_out(folder)):
            check(case, shell)
    except (Exception, HungError):  # noqa: BLE001 - fuzzing looks for any exception
        return traceback.format_exc(limit=-12)
    return ""


def peak_megabytes() -> float:
    """Return the peak memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def cases_of(seed: int, numbers: Iterable[int], only: str | None = None) -> Iterable[Case]:
    """Yield the inputs with these numbers."""
    for number in numbers:
        yield make(seed, number, only)
