"""Whether a rung may be climbed, and what its reader can do about it."""

import shlex
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Final

from tpucfg.findings import Finding
from tpucfg.plan import Job
from tpucfg.results.evaluation import RungEvaluation
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.spec.project import Project

_SPEC: Final = Path("tpucfg.yaml")
"""What commands read where no other spec is named."""
_LONGEST_RUN: Final = 20
"""Characters of a run's id, as the schema of a record has it."""
_MOST_DIGITS: Final = 9


def may_run(survey: LadderStatus, size: str) -> bool:
    """Whether the rung below has passed, as far as is known. The first rung is open, and without a gate each is."""
    below = survey.below(size)
    return below is None or survey.gate is None or (below.passed and not survey.results.findings)


def gate_refusals(
    project: Project, surveys: Mapping[str, LadderStatus], jobs: Iterable[Job], spec: Path
) -> Mapping[str, Finding]:
    """Why jobs may not be started yet, by their names; those that may be are absent."""
    found = {job.name: _refusal(project, surveys[job.environment.name], job.size, spec) for job in jobs}
    return {name: finding for name, finding in found.items() if finding}


def _refusal(project: Project, survey: LadderStatus, size: str, spec: Path) -> Finding | None:
    below = survey.below(size)
    if below is None or may_run(survey, size):
        return None
    record = below.record
    of_record = ((record.location, f"the last record of {below.size}"),) if record and record.location else ()
    whys = [it.why for it in below.shortfalls] or [
        f"{survey.results.file} {survey.results.problem}, and decides about it"
    ]
    steps = ", ".join(": ".join(step) for step in remedy(survey, below, spec))
    then = steps if below.shortfalls else f"fix {survey.results.file}"
    return Finding.of(
        "TPU110",
        f"{size} may not be climbed in {survey.environment.name}: {'; '.join(whys)}",
        project.document.value_location(below.shortfalls[0].path if below.shortfalls else ("gate",)),
        help=f"{then}; or climb in spite of it with --force",
        related=of_record,
    )


def remedy(survey: LadderStatus, standing: RungEvaluation, spec: Path) -> tuple[tuple[str, str], ...]:
    """What makes a rung pass that has not: sentences, each with the command that does it."""
    size = next((it.missing for it in standing.shortfalls if it.missing), standing.size)
    environment, of_log = survey.environment.name, ("--from", "LOG")
    record = command_line("record", environment, size, spec, *of_log)
    if survey.standing(size).record is None:
        return ((f"run {size}, then", record),)
    if any(it.missing for it in standing.shortfalls):
        return ((f"record {size} again, with everything that the gate compares", record),)
    run = ("--run", next_run(survey, size))
    return (
        (f"fix {size} and run it again in a folder of its own", command_line("submit", environment, size, spec, *run)),
        ("then", command_line("record", environment, size, spec, *run, *of_log)),
    )


def next_run(survey: LadderStatus, size: str) -> str:
    """An id for another run of a rung: one that no record of it has. A trainer would resume a run that is done."""
    taken = {it.run for it in survey.results.records if it.size == size and it.run}
    last = survey.standing(size).record
    stem, number = _numbered(last.run if last and last.run else "a1")
    return next(run for at in count(number + 1) if (run := f"{stem}{at}") not in taken)


def _numbered(run: str) -> tuple[str, int]:
    """A run's id in two parts: `a9` is a, 9. One that would be too long with another number is left behind."""
    stem = run.rstrip("0123456789")
    digits = run[len(stem) :]
    if len(run) >= _LONGEST_RUN or len(digits) > _MOST_DIGITS:
        return "a", 1
    return stem, int(digits or 1)


def command_line(name: str, environment: str, size: str, spec: Path, *more: str) -> str:
    """A command line of this tool about one rung, ready to paste."""
    of_spec = [] if spec == _SPEC else ["--spec", str(spec)]
    return shlex.join(["tpucfg", name, *of_spec, "--env", environment, "--size", size, *more])
