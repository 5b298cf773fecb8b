"""The fits of rungs: each result compared with its job, and the settings that can lower a rung's memory."""

import hashlib
import os
import shlex
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tpucfg.fit.fit_file import FitFile, FitKey, FitResult, Memory, fit_path, read_fit_file
from tpucfg.fit.forecast import StepInterval
from tpucfg.fit.inputs import FitInputs, fit_inputs
from tpucfg.fs import open_regular_file
from tpucfg.number_format import format_rounded
from tpucfg.plan import Job, flag_name
from tpucfg.spec import Project, command_words
from tpucfg.spec.placeholders import used_placeholders
from tpucfg.text_format import format_count, format_value

# The files of the program.

MAX_SOURCE_BYTES: Final = 4 << 20
"""The limit for one file; source code is far smaller."""
_MAX_TOTAL_BYTES: Final = 256 << 20
"""The limit for all files of a folder: a written file of results could name one large file by thousands of paths."""
_DIGITS: Final = 16
"""Hexadecimal digits of a hash in the file of results."""


class ProgramFiles:
    """The files below a spec's folder, each hashed at most once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes: dict[str, str | None] = {}
        self._remaining_bytes = _MAX_TOTAL_BYTES

    def hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return the hashes of the files that can be read, by path relative to the folder."""
        hashes = {path: self.hash(path) for path in paths}
        return {path: value for path, value in hashes.items() if value}

    def hash(self, path: str) -> str | None:
        """Return the hash of one file; None if it cannot be read, or is too large for a program's file."""
        if path not in self._hashes:
            content = _content(self._folder / path) if self._remaining_bytes > 0 else None
            self._remaining_bytes -= len(content or b"")
            self._hashes[path] = None if content is None else content_hash(content)
        return self._hashes[path]


def _content(path: Path) -> bytes | None:
    """Return the content of a file, or the target of a link; a result has the target's file as well."""
    try:
        if path.is_symlink():
            return os.fsencode(path.readlink())
        with open_regular_file(path, follow_links=False) as file:
            content = file.read(MAX_SOURCE_BYTES + 1)
    except OSError:
        return None
    return None if len(content) > MAX_SOURCE_BYTES else content


def content_hash(content: bytes) -> str:
    """Return the hash of a file's content, as the file of results has it."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


# The settings that can lower the memory.

_PARALLELISM: Final = frozenset({"model_parallel", "data_parallel"})


class MemorySettings(NamedTuple):
    """The values on which a rung's memory depends, as far as its program can see them."""

    grad_accum: int
    micro_batch: int
    """Examples of one replica and micro-batch."""
    accumulation_flag: str | None
    """The flag of the accumulation that the program gets; None if it gets none."""
    sees_accumulation: bool
    """True if the program gets the accumulation, by that flag or by a placeholder."""
    can_divide_model: bool
    """True if a flag or a variable of the program has `${model_parallel}` or `${data_parallel}`, and a slice has more
    devices than share a copy of the batch now."""
    is_tuned_size: bool = False
    """True on the size of `training.tuned_on` without an accumulation of its own: `training` then decides it, and an
    override would make its micro-batch another one than was tuned, which is a warning (TPU047)."""


NO_MEMORY_SETTINGS: Final = MemorySettings(
    1, 1, None, sees_accumulation=False, can_divide_model=False
)
"""The settings for a program that has no flag or placeholder for them."""


def memory_settings(project: Project, job: Job) -> MemorySettings:
    """Return the settings of a job on which its memory depends."""
    rung, trainer = job.rung, job.settings.trainer
    placeholders = used_placeholders(trainer.texts)
    flag = flag_name(project.training, "grad_accum")
    return MemorySettings(
        rung.grad_accum or 1,
        int(rung.micro_batch),
        flag,
        flag is not None or "grad_accum" in placeholders,
        not placeholders.isdisjoint(_PARALLELISM)
        and rung.model_parallel < rung.slice.devices // rung.slice.slices,
        rung.size == project.training.tuned_on and "grad_accum" not in rung.overridden,
    )


# The fits.

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
    memory_settings: MemorySettings = NO_MEMORY_SETTINGS
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


def rung_fits(
    project: Project, jobs: Iterable[Job], file: FitFile, program: ProgramFiles
) -> Mapping[FitKey, RungFit]:
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
    return RungFit(key, result, changes, file.is_trusted, memory_settings(project, job))


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
    if old.image != inputs.image:
        yield "trainer.image"
    if old.step != inputs.step:
        yield "trainer.fit.step"
    if (old.topology, old.chips_per_host) != (inputs.topology, inputs.chips_per_host):
        yield "the slice's topology or hosts"
    yield from _listed(_changed_keys(result.files, program.hashes(result.files)))


def _changed_keys(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    missing = object()
    return (
        key for key in {**before, **after} if before.get(key, missing) != after.get(key, missing)
    )


def _listed(names: Iterable[str]) -> Iterator[str]:
    """Yield the first names, and a count of the others."""
    every = list(names)
    # Names of an older result are from a file that anyone can write, and reach terminals.
    yield from (format_value(name, quoted=False) for name in every[:_MAX_CHANGES])
    if len(every) > _MAX_CHANGES:
        yield f"{len(every) - _MAX_CHANGES} more"


class KnownFits(NamedTuple):
    """The fits of some jobs, and the file that they are from."""

    file: FitFile
    rungs: Mapping[FitKey, RungFit]
    """The fit of each job whose spec names a training step."""

    def of_jobs(self, jobs: Iterable[Job]) -> "KnownFits":
        """Return the fits of these jobs only."""
        keys = {fit_key(job) for job in jobs}
        return self._replace(rungs={key: fit for key, fit in self.rungs.items() if key in keys})

    def in_environment(self, name: str) -> "KnownFits | None":
        """Return the fits of one environment; None if the spec names no training step for any of its rungs."""
        rungs = {key: fit for key, fit in self.rungs.items() if key.environment == name}
        return self._replace(rungs=rungs) if rungs else None

    def shown_values(self, environment: str) -> Hashable:
        """Return all that a ladder shows of an environment's fits: equal for environments that can share a table."""
        fits = self.of_environment(environment).items()
        return tuple((size, fit.verdict, fit.changes, _figures(fit.current)) for size, fit in fits)

    def of_environment(self, environment: str) -> dict[str, RungFit]:
        """Return the fits of one environment, by size."""
        return {key.size: fit for key, fit in self.rungs.items() if key.environment == environment}


def read_known_fits(project: Project, jobs: Iterable[Job], folder: Path) -> KnownFits:
    """Return the fits of jobs, from the results next to a spec in that folder."""
    file = read_fit_file(fit_path(folder), command=fit_command(project, [*project.environments]))
    return KnownFits(file, rung_fits(project, jobs, file, ProgramFiles(folder)))


def _figures(result: FitResult | None) -> Hashable:
    if result is None:
        return None
    model = result.forecast and (result.forecast.seconds, result.forecast.is_reliable)
    return result.memory, result.flops, result.flops_8bit, result.uncounted, model


def fit_command(project: Project, environments: Sequence[str], *sizes: str) -> str:
    """Return the command that compiles rungs in some environments, quoted for a shell; without sizes, all rungs."""
    wanted = {*sizes}
    compiled = {
        name for name, other in project.environments.items() if not sizes or wanted & {*other.sizes}
    }
    named = () if {*environments} == compiled else environments
    return shlex.join(command_words("fit", project.document.file, env=named, size=sizes))


# The words for memory, times, work and outdated results, so that every output describes them in the same way.

_GIB: Final = 1 << 30
_MIB: Final = 1 << 20
_KIB: Final = 1 << 10
_MIN_GIB: Final = 10 * _MIB
"""Amounts below this have a smaller unit."""
_NOT_BELOW: Final = "at least "
_TIME_UNITS: Final = (("s", 1), ("ms", 10**3), ("µs", 10**6))


def gib(amount: int) -> str:
    """Return bytes as GiB for a place that names the unit: `15.75`, `7.3`, `0.919`; `<0.01` below 10 MiB."""
    if 0 < amount < _MIN_GIB:
        return "<0.01"
    if abs(amount) < _GIB:
        return format_rounded(Fraction(amount, _GIB))
    return f"{amount / _GIB:.2f}".rstrip("0").rstrip(".")


def short_amount(amount: int) -> str:
    """Return bytes as GiB where that unit follows, and below 10 MiB with a unit of their own: `7.3`, `1.6 MiB`."""
    if not 0 < amount < _MIN_GIB:
        return gib(amount)
    if amount < _KIB:
        return format_count(amount, "byte")
    unit, size = ("MiB", _MIB) if amount >= _MIB else ("KiB", _KIB)
    return f"{format_rounded(Fraction(amount, size))} {unit}"


def amount_text(amount: int) -> str:
    """Return bytes with their unit: `15.75 GiB`, `1.6 MiB`."""
    return short_amount(amount) if 0 < amount < _MIN_GIB else f"{gib(amount)} GiB"


def memory_text(memory: Memory) -> str:
    """Return the memory of a device: `11.2 of 15.75 GiB`, or `at least 23.26 of 15.75 GiB` after a refusal."""
    least = "" if memory.exact else _NOT_BELOW
    return f"{least}{short_amount(memory.used)} of {amount_text(memory.available)}"


def verdict_text(fit: RungFit) -> str:
    """Return the verdict of a rung with its memory: `11.2 of 15.75 GiB`, `does not fit: …`, `not compiled`."""
    result = fit.current
    if result is None:
        return fit.verdict
    return (
        memory_text(result.memory) if result.fits else f"does not fit: {memory_text(result.memory)}"
    )


def outdated_text(fit: RungFit) -> str:
    """Return the sentence about a result of another version of the job; empty if it is of the current one."""
    return f"compiled before a change of {', '.join(fit.changes)}" if fit.changes else ""


def interval_text(interval: StepInterval) -> str:
    """Return the time in which a step is expected: both ends, or a measured one."""
    low, high = step_time(interval.low), step_time(interval.high)
    if low == high:
        return low
    number, unit = low.split()
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low}–{high}"


def step_time(seconds: Fraction) -> str:
    """Return the time of a step to three digits, with its unit: `45.9 s`, `442 ms`, `2.63 µs`."""
    unit, factor = next((unit for unit in _TIME_UNITS if seconds * unit[1] >= 1), _TIME_UNITS[-1])
    return f"{format_rounded(seconds * factor)} {unit}"
