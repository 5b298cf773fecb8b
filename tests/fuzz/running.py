"""Many inputs one after the other in this process, and what came of them."""

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
from fuzz.kinds import make, prove
from fuzz.trying import HungError, Shell, failing_loudly


class Failure(NamedTuple):
    """An input after which something did not hold."""

    case: Case
    why: str


class Tally(NamedTuple):
    """What came of some inputs."""

    inputs: Counter[str]
    """By kind."""
    commands: int
    statuses: Counter[int]
    ids: Counter[str]
    """The findings that were said."""
    slowest: float
    """Seconds of the processor's time of the slowest command."""
    slowest_case: Case | None
    peak: float
    """Megabytes that the process held at most."""
    failures: tuple[Failure, ...]

    def to_json(self) -> str:
        """For another process."""
        slowest = self.slowest_case and self.slowest_case.to_json()
        failures = [(case.to_json(), why) for case, why in self.failures]
        return json.dumps(self._replace(slowest_case=slowest, failures=failures))  # type: ignore[arg-type] # as JSON

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What another process wrote."""
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


def of_failure(failure: Failure) -> Tally:
    """What came of one input that took its process with it."""
    return Tally(Counter([failure.case.kind]), 0, Counter(), Counter(), 0.0, None, 0.0, (failure,))


def merged(tallies: Iterable[Tally]) -> Tally:
    """What came of all of them."""
    whole = Tally(Counter(), 0, Counter(), Counter(), 0.0, None, 0.0, ())
    for one in tallies:
        slower = one if one.slowest > whole.slowest else whole
        whole = Tally(
            whole.inputs + one.inputs,
            whole.commands + one.commands,
            whole.statuses + one.statuses,
            whole.ids + one.ids,
            slower.slowest,
            slower.slowest_case,
            max(whole.peak, one.peak),
            whole.failures + one.failures,
        )
    return whole


def scratch() -> str | None:
    """A folder in memory, where there is one: a disk's time would be most of the whole."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of a random name is made in it


def run_all(cases: Iterable[Case]) -> Tally:
    """Tries them all."""
    shell, inputs, failures = Shell(), Counter[str](), list[Failure]()
    slowest_case, slowest = None, 0.0
    with tempfile.TemporaryDirectory(dir=scratch()) as folder, failing_loudly():
        for case in cases:
            inputs[case.kind] += 1
            if why := tried(case, Path(folder), shell):
                failures.append(Failure(case, why))
            if shell.slowest > slowest:
                slowest_case, slowest = case, shell.slowest
    return Tally(
        inputs, shell.commands, shell.statuses, shell.ids, slowest, slowest_case, peak_megabytes(), tuple(failures)
    )


def tried(case: Case, folder: Path, shell: Shell) -> str:
    """Why the input fails; empty where it does not."""
    try:
        with chdir(case.lay_out(folder)):
            prove(case, shell)
    except (Exception, HungError):  # noqa: BLE001 - any at all is what is looked for
        return traceback.format_exc(limit=-12)
    return ""


def peak_megabytes() -> float:
    """What this process held at most so far."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def numbered(seed: int, numbers: Iterable[int], only: str | None = None) -> Iterable[Case]:
    """The inputs of these numbers."""
    for number in numbers:
        yield make(seed, number, only)
