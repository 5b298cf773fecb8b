"""The fits of a spec's rungs, as `results/fit.json` has them, for the commands that read that file."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Level
from tpucfg.fit.fit_file import NAME, FitFile, fit_path, read_fit_file
from tpucfg.fit.fit_findings import fit_command, fit_findings, memory_excess
from tpucfg.fit.levers import less_memory
from tpucfg.fit.program_files import ProgramFiles
from tpucfg.fit.result import FitKey, FitResult
from tpucfg.fit.rung_fit import RungFit, fit_key, rung_fits
from tpucfg.fit.wording import outdated_text, verdict_text
from tpucfg.plan import Job
from tpucfg.spec import Project
from tpucfg.text_format import format_count, listed

_UNKNOWN: Final = ("not compiled", "outdated")
_MAX_NAMES: Final = 3
"""Reasons that a note gives, and rungs that it names for each."""


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


class FitProblem(NamedTuple):
    """The reason why a rung is not known to fit."""

    reason: str
    """A clause: `its training step was never compiled`."""
    fix: str
    """The edit before `tpucfg fit` compiles the rung, as an imperative."""


def _figures(result: FitResult | None) -> Hashable:
    if result is None:
        return None
    return result.memory, result.flops, result.flops_8bit, result.uncounted, result.hbm_bytes, result.ici_bytes


def read_known_fits(project: Project, jobs: Iterable[Job], folder: Path) -> KnownFits:
    """Return the fits of jobs, from the results next to a spec in that folder."""
    file = read_fit_file(fit_path(folder), command=fit_command(project, [*project.environments]))
    return KnownFits(file, rung_fits(project, jobs, file, ProgramFiles(folder)))


def known_fit_findings(project: Project, known: KnownFits, *, level: Level | None = None) -> tuple[Finding, ...]:
    """Return the findings about the file, the memory of the steps, and the rungs whose fit is not known.

    Args:
        project: The spec.
        known: The fits of its selected jobs.
        level: The level of errors, for commands that they do not stop.
    """
    # No result of a broken file counts, so every rung would be reported as not compiled.
    if known.file.findings:
        return tuple(finding._replace(level=level or finding.level) for finding in known.file.findings)
    return (*fit_findings(project, known.rungs.values(), level=level), *_unknown_fits(project, known))


def _unknown_fits(project: Project, known: KnownFits) -> Iterator[Finding]:
    """Yield a note for each environment with rungs whose fit is not known."""
    for name, environment in project.environments.items():
        if text := unknown_fits_text(known, name):
            unknown = _unknown(known, name)
            sizes = () if len(unknown) == len(environment.sizes) else tuple(unknown)
            hint = f"compile the training step, without a TPU: {fit_command(project, (name,), *sizes)}"
            yield Finding.of("TPU107", text, project.document.key_location(environment.path), help=hint)


def unknown_fits_text(known: KnownFits, environment: str) -> str:
    """Return the sentence about the rungs of an environment whose fit is not known; empty if there is none."""
    fits, unknown = known.of_environment(environment), _unknown(known, environment)
    if not unknown:
        return ""
    count = f"{len(unknown)} of {len(fits)} rungs" if len(fits) > 1 else next(iter(unknown))
    return f"{environment}: the fit of {count} is not known: {_reasons(unknown)}"


def _unknown(known: KnownFits, environment: str) -> Mapping[str, RungFit]:
    return {size: fit for size, fit in known.of_environment(environment).items() if fit.verdict in _UNKNOWN}


def _reasons(unknown: Mapping[str, RungFit]) -> str:
    """Return the reasons, each once with its rungs: `v2-8 and v2-32 were never compiled`."""
    sizes: dict[str, list[str]] = {}
    for size, fit in unknown.items():
        sizes.setdefault(unknown_text(fit), []).append(size)
    reasons = [
        f"{listed(names, limit=_MAX_NAMES, last=' and ')} {'was' if len(names) == 1 else 'were'} {text}"
        for text, names in sizes.items()
    ]
    others = len(reasons) - _MAX_NAMES
    more = f"; and {format_count(others, 'other reason')}" if others > 0 else ""
    return "; ".join(reasons[:_MAX_NAMES]) + more


def known_text(fit: RungFit) -> str:
    """Return what is known of a rung: `11.2 of 15.75 GiB of HBM a device, as committed`."""
    source = "" if fit.is_trusted else f", as committed in results/{NAME}"
    return f"not known: {unknown_text(fit)}" if fit.current is None else f"{verdict_text(fit)} of HBM a device{source}"


def unknown_text(fit: RungFit) -> str:
    """Return the reason why a fit is not known, as the end of a sentence about the rung."""
    return outdated_text(fit) or "never compiled"


# The condition `gate.fit`: a rung may be started only if its training step is known to fit.


def fit_problems(known: KnownFits, environment: str, sizes: Iterable[str]) -> Mapping[str, FitProblem]:
    """Return the problem of each rung that is not known to fit, by size."""
    fits = known.of_environment(environment)
    problems = {size: _problem(known, fits.get(size), size) for size in sizes}
    return {size: problem for size, problem in problems.items() if problem}


def _problem(known: KnownFits, fit: RungFit | None, size: str) -> FitProblem | None:
    """Return the problem of a rung; `fit` is None if the spec names no training step for it."""
    if fit is None:
        return FitProblem("the spec names no training step for it", "set trainer.fit.step, and compile it")
    if known.file.findings:
        return FitProblem(f"{known.file.path} cannot be read", f"delete {known.file.path}, and compile again")
    if fit.verdict == "fits":
        return None
    if fit.current:  # it does not fit
        edit = less_memory(size, fit.levers, memory_excess(fit.current.memory))
        return FitProblem(f"its training step {verdict_text(fit)}", f"{edit}, and compile {size} again")
    return FitProblem(f"its training step was {unknown_text(fit)}", f"compile {size}")
