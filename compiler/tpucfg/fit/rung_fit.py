"""The fit of a rung as far as it is known without JAX: its result, and whether that is of the job as it is now."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from tpucfg.fit.fit_file import FitFile
from tpucfg.fit.inputs import FitInputs, fit_inputs
from tpucfg.fit.levers import NO_LEVERS, Levers, levers
from tpucfg.fit.program_files import ProgramFiles
from tpucfg.fit.result import FitKey, FitResult
from tpucfg.plan import Job
from tpucfg.spec import Project
from tpucfg.text_format import format_value

Verdict = Literal["fits", "does not fit", "outdated", "not compiled"]

_MAX_CHANGES: Final = 3
"""Changes of a kind that a reason names one by one."""


class RungFit(NamedTuple):
    """The fit of one rung."""

    key: FitKey
    result: FitResult | None
    """The result in the file, which may be outdated; None if the rung was never compiled."""
    changes: tuple[str, ...] = ()
    """The inputs that have changed since the compilation, in a few words each: `--batch_size` or `trainer/fit.py`."""
    is_trusted: bool = False
    """True if a job of this run made the result; a committed one may have been written by hand."""
    levers: Levers = NO_LEVERS
    """The settings that can lower its memory."""

    @property
    def current(self) -> FitResult | None:
        """The result if it is of the job as it is now."""
        return None if self.changes else self.result

    @property
    def verdict(self) -> Verdict:
        """The state of knowledge in a word or two."""
        if self.result is None:
            return "not compiled"
        if self.changes:
            return "outdated"
        return "fits" if self.result.fits else "does not fit"


def rung_fits(project: Project, jobs: Iterable[Job], file: FitFile, program: ProgramFiles) -> Mapping[FitKey, RungFit]:
    """Return the fit of each job whose spec names a training step."""
    fits = (rung_fit(project, job, file, program) for job in jobs)
    return {fit.key: fit for fit in fits if fit}


def rung_fit(project: Project, job: Job, file: FitFile, program: ProgramFiles) -> RungFit | None:
    """Return the fit of a job; None if the spec names no training step for it."""
    inputs = fit_inputs(project, job)
    if inputs is None:
        return None
    key = fit_key(job)
    result = file.results.get(key)
    changes = tuple(_changes(result, inputs, program)) if result else ()
    return RungFit(key, result, changes, file.is_trusted, levers(project, job))


def fit_key(job: Job) -> FitKey:
    """Return the key of a job's result."""
    return FitKey(job.project, job.environment.name, job.size)


def _changes(result: FitResult, inputs: FitInputs, program: ProgramFiles) -> Iterator[str]:
    """Yield the inputs that have changed since a compilation."""
    old = result.inputs
    yield from _listed(f"--{name}" for name in _changed_keys(old.flags, inputs.flags))
    yield from _listed(f"env {name}" for name in _changed_keys(old.env, inputs.env))
    if old.xla_flags != inputs.xla_flags:
        yield "the XLA flags"
    if old.step != inputs.step:
        yield "trainer.fit.step"
    if (old.topology, old.chips_per_host) != (inputs.topology, inputs.chips_per_host):
        yield "the slice's topology or hosts"
    yield from _listed(_changed_keys(result.files, program.hashes(result.files)))


def _changed_keys(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    missing = object()
    return (key for key in {**before, **after} if before.get(key, missing) != after.get(key, missing))


def _listed(names: Iterable[str]) -> Iterator[str]:
    """Yield the first names, and a count of the others."""
    every = list(names)
    # Names of an older result are from a file that anyone can write, and reach terminals.
    yield from (format_value(name, quoted=False) for name in every[:_MAX_CHANGES])
    if len(every) > _MAX_CHANGES:
        yield f"{len(every) - _MAX_CHANGES} more"
