"""The fits of a revision's rungs: as its committed file has them, and as a job of this run has compiled them.

A program's files are hashed in the commit, because an export leaves out links and what exceeds its limits: a result of
such a file would look outdated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.changes.facts import Scope
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.fit.fit_file import FitFile, FitResult, fit_path, read_fit_file
from tpucfg.fit.rung_fit import MAX_SOURCE_BYTES, ProgramFiles, RungFit, content_hash, rung_fits
from tpucfg.git.repository import Repository
from tpucfg.git.snapshots import Snapshot
from tpucfg.git.trees import Blob, TreeEntry, follow_paths, read_contents

_MAX_BYTES: Final = 1 << 26
"""The limit for all files of a revision together."""
_LINE_BREAK: Final = "\n"


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


# The program


class CommittedProgramFiles(ProgramFiles):
    """The files below a spec's folder in a commit, each read at most once; links inside the commit are followed."""

    def __init__(self, repository: Repository, commit: str, folder: PurePosixPath) -> None:
        super().__init__(repository.folder)
        self._repository = repository
        self._prefix = f"{commit}:{folder.as_posix()}/" if folder.parts else f"{commit}:"
        self._known: dict[str, str | None] = {}
        self._remaining_bytes = _MAX_BYTES

    def hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return the hashes of the files that can be read, by path relative to the folder."""
        wanted = [*dict.fromkeys(paths)]
        self._read([path for path in wanted if path not in self._known])
        known = {path: self._known[path] for path in wanted}
        return {path: value for path, value in known.items() if value}

    def hash(self, path: str) -> str | None:
        """Return the hash of one file; None if it cannot be read, or is too large for a program's file."""
        return self.hashes([path]).get(path)

    def _read(self, paths: Sequence[str]) -> None:
        """Hash files that were not read before, all of them by two git processes."""
        self._known.update(dict.fromkeys(paths))
        # One line is one request to git, which resolves dots that lead out of the folder.
        asked = [path for path in paths if _LINE_BREAK not in path and ".." not in path.split("/")]
        blobs = zip(asked, follow_paths(self._repository, [self._prefix + path for path in asked]), strict=True)
        chosen = {path: blob for path, blob in blobs if blob and self._has_room_for(blob)} if asked else {}
        entries = [TreeEntry(PurePosixPath(path), "file", blob.id, blob.size) for path, blob in chosen.items()]
        for path, content in zip(chosen, read_contents(self._repository, entries), strict=True):
            self._known[path] = content_hash(content)

    def _has_room_for(self, blob: Blob) -> bool:
        """Return True for a file within the limits, and count it."""
        if blob.kind != "blob" or blob.size > min(MAX_SOURCE_BYTES, self._remaining_bytes):
            return False
        self._remaining_bytes -= blob.size
        return True


def program_files(snapshot: Snapshot) -> ProgramFiles:
    """Return the files below the folder of a snapshot's spec."""
    folder = snapshot.spec.parent
    if snapshot.repository is None or snapshot.commit is None or snapshot.exported_to is None:
        return ProgramFiles(folder)
    relative = PurePosixPath(folder.relative_to(snapshot.exported_to).as_posix())
    return CommittedProgramFiles(snapshot.repository, snapshot.commit.id, relative)
