"""The fits of a revision's rungs: as its committed file has them, and as a job of this run has compiled them."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.changes.committed_program import program_files
from tpucfg.changes.facts import Scope
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.fit.fit_file import FitFile, fit_path, read_fit_file
from tpucfg.fit.program_files import ProgramFiles
from tpucfg.fit.result import FitResult
from tpucfg.fit.rung_fit import RungFit, rung_fits


class RunFits(NamedTuple):
    """The file of results that a job of this run has left for a spec."""

    file: FitFile
    problem: str = ""
    """The reason why it has no results, as the end of a sentence; empty if it can be read."""


class KnownRung(NamedTuple):
    """The knowledge about a rung's fit in one revision."""

    committed: RungFit
    """By the committed file, which may have been written by hand."""
    run: RungFit | None = None
    """By the job of this run; None if there was none, or its file has a problem."""
    base: RungFit | None = None
    """By the committed file of the base, compared with this revision's job and program; None in the base itself."""
    device_bytes: Fraction | None = None
    """The memory that one device has by the catalog; None if no page states it."""
    unlisted: tuple[str, ...] = ()
    """The files of the base's result that this revision still has, but its committed result does not list."""

    @property
    def best(self) -> RungFit:
        """The result of this run if it is of the current job, otherwise the committed one."""
        return self.run if self.run and self.run.current else self.committed

    @property
    def current(self) -> FitResult | None:
        """The best result if it is of the current job."""
        return self.best.current


class RevisionFits(NamedTuple):
    """The fits of a revision."""

    rungs: Mapping[Scope, KnownRung]
    """Those of every job whose spec names a training step."""
    file: FitFile | None = None
    """The committed file; None if no job's spec names a training step."""
    problem: str = ""
    """The first reason why no result of the committed file counts; empty if it can be read."""
    run_problem: str = ""
    """The reason why the file of this run has no results; empty if it can be read, or none was given."""


NO_FITS: Final = RevisionFits({})


def read_revision_fits(
    revision: CompiledRevision, run: RunFits | None = None, base: FitFile | None = None
) -> RevisionFits:
    """Read the results beside a revision's spec, and compare them with its jobs and its program.

    Args:
        revision: The base or the head.
        run: The results that a job of this run has made for this revision.
        base: The committed results of the base, to compare with the jobs of head.

    Raises:
        GitError: The commit cannot be read.
    """
    project, jobs = revision.project, [*revision.jobs.values()]
    if project is None or not any(job.settings.trainer.fit for job in jobs):
        return NO_FITS
    program = program_files(revision.snapshot)
    file = read_fit_file(fit_path(revision.snapshot.spec.parent))
    committed, own, earlier = (
        _by_config(rung_fits(project, jobs, source, program).values()) if source else {}
        for source in (file, run.file if run and not run.problem else None, base)
    )
    slices = {config_key(job): job.slice for job in jobs}
    return RevisionFits(
        {
            key: KnownRung(
                fit,
                own.get(key),
                earlier.get(key),
                _device_bytes(slices[key]),
                tuple(_unlisted(earlier.get(key), fit, program)),
            )
            for key, fit in committed.items()
        },
        file,
        file.findings[0].message if file.findings else "",
        run.problem if run else "",
    )


def _device_bytes(slice_: Slice) -> Fraction | None:
    return None if slice_.hbm_gib is None else Fraction(slice_.hbm_gib << 30, slice_.devices)


def _unlisted(base: RungFit | None, head: RungFit, program: ProgramFiles) -> Iterator[str]:
    """Yield the files that only the result of the base lists, although they still exist."""
    if base and base.result and head.result:
        old, new = base.result.files, head.result.files
        yield from program.hashes(path for path in old if path not in new)


def _by_config(fits: Iterable[RungFit]) -> dict[Scope, RungFit]:
    return {Scope(fit.key.environment, fit.key.size): fit for fit in fits}
