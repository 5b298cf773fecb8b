"""Changes to the fit of each rung: the results of two revisions and of this run, and the sentences about them.

A program's files are hashed in the commit, because an export leaves out links and what exceeds its limits: a result of
such a file would look outdated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.changes.facts import Risk, Scope, sorted_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Statement, group_by_config
from tpucfg.fit.fit_file import FitFile, FitResult, fit_path, read_fit_file
from tpucfg.fit.fit_findings import has_little_headroom
from tpucfg.fit.rung_fit import (
    MAX_SOURCE_BYTES,
    ProgramFiles,
    RungFit,
    amount_text,
    content_hash,
    memory_text,
    rung_fits,
    verdict_text,
)
from tpucfg.git.repository import Repository
from tpucfg.git.snapshots import Snapshot
from tpucfg.git.trees import FIT_FILE, CommitTree, TreeEntry, follow_paths
from tpucfg.number_format import format_percent
from tpucfg.paths import grouped
from tpucfg.text_format import listed

_FILE: Final = str(FIT_FILE)
_AS_COMMITTED: Final = ", as committed"
_DOES_NOT_FIT: Final = "does not fit"
_NOT_ANY_MORE: Final = "fit not known any more"
_NOT_FROM_THIS_RUN: Final = "fit not known from this run"
_MAX_BYTES: Final = 1 << 26
"""The limit for all files of a revision's program together."""
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


_NO_FITS: Final = RevisionFits({})


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
        return _NO_FITS
    program = program_files(revision.snapshot)
    file = read_fit_file(fit_path(revision.snapshot.spec.parent))
    committed, own, earlier = (
        _by_config(rung_fits(project, jobs, source, program).values()) if source else {}
        for source in (file, run.file if run and not run.problem else None, base)
    )
    return RevisionFits(
        {key: KnownRung(fit, own.get(key), earlier.get(key)) for key, fit in committed.items()},
        file,
        file.findings[0].message if file.findings else "",
        run.problem if run else "",
    )


def _by_config(fits: Iterable[RungFit]) -> dict[Scope, RungFit]:
    return {Scope(fit.key.environment, fit.key.size): fit for fit in fits}


# The rows of both revisions


class FitRow(NamedTuple):
    """The fit of a rung, in the environments where it is the same."""

    size: str
    before: RungFit | None
    """None for a rung that is new, or whose spec named no training step."""
    after: RungFit
    is_change: bool
    """True if the change makes the difference, and not only a job of this run that knows more than the base."""
    environments: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """True if the rung is new, or something else is known of it than before."""
        return self.before is None or _known(self.before) != _known(self.after)


class FitChanges(NamedTuple):
    """The fits of two revisions."""

    rows: tuple[FitRow, ...] = ()
    """One for each rung of head whose spec names a training step."""
    statements: tuple[LocatedStatement, ...] = ()
    """Effects of the change."""
    notices: tuple[LocatedStatement, ...] = ()
    """Sentences about the results of this run, which are no effect of the change."""
    problem: str = ""
    """The reason why no result of the committed file counts; empty if it can be read."""
    run_problem: str = ""
    """The reason why the file of this run has no results; empty if it can be read, or none was given."""

    @property
    def is_change(self) -> bool:
        """True if the change makes a rung need another amount of memory, or no longer or newly known."""
        return any(row.is_change for row in self.rows)


NO_FIT_CHANGES: Final = FitChanges()


def compute_fits(
    before: CompiledRevision, after: CompiledRevision, run: RunFits | None
) -> FitChanges:
    """Return the changes to the fits of two revisions.

    Args:
        before: The base, whose results are those that it has committed.
        after: The head.
        run: The results of head that a job of this run has made; None if there was no such job.

    Raises:
        GitError: A commit cannot be read.
    """
    old = read_revision_fits(before)
    new = read_revision_fits(after, run, old.file)
    if not new.rungs:
        return NO_FIT_CHANGES
    gate = after.project.gate if after.project else None
    statements = fit_statements(old, new, [*after.jobs], has_gate=gate is not None and gate.fit)
    notices = run_statements(new, [*after.jobs])
    return FitChanges(
        tuple(_rows(old, new)), tuple(statements), tuple(notices), new.problem, new.run_problem
    )


def _rows(old: RevisionFits, new: RevisionFits) -> Iterator[FitRow]:
    """Yield a row for each rung; environments where it is the same share one."""
    rows = [_row(key, old.rungs.get(key), new.rungs[key]) for key in sorted_keys(new.rungs)]
    shown = (
        ((row.size, _shown(row.before), _shown(row.after), row.is_change), row) for row in rows
    )
    for same in grouped(shown).values():
        names = tuple(name for row in same for name in row.environments)
        yield same[0]._replace(environments=names)


def _row(key: Scope, old: KnownRung | None, new: KnownRung) -> FitRow:
    before = old.committed if old else None
    texts = [_known(fit) for fit in (before, new.committed, new.best) if fit]
    is_change = before is None or texts[0] != texts[1] or bool(texts[0] and texts[0] != texts[2])
    return FitRow(key.size, before, new.best, is_change, (key.environment,))


def _known(fit: RungFit) -> str:
    """Return what is known of a rung; empty if that is nothing, whatever the reason."""
    return verdict_text(fit) if fit.current else ""


def _shown(fit: RungFit | None) -> tuple[object, ...]:
    return (verdict_text(fit), fit.changes, fit.is_trusted) if fit else ()


# Sentences


def fit_statements(
    old: RevisionFits, new: RevisionFits, configs: Sequence[Scope], *, has_gate: bool
) -> Iterator[LocatedStatement]:
    """Yield the sentences about what the change does to the fits.

    Args:
        old: The fits of the base.
        new: The fits of the head.
        configs: All configs of the head.
        has_gate: True if `gate.fit` lets only rungs start that are known to fit.
    """
    if new.problem and new.problem != old.problem:
        yield LocatedStatement(
            "", Statement("{} cannot be read: {}", (_FILE, new.problem), Risk.CAUTION)
        )
    scoped: list[tuple[Scope, Statement]] = []
    for key in sorted_keys(new.rungs):
        rung, before = new.rungs[key], old.rungs[key].committed if key in old.rungs else None
        statements = (*_worse(before, rung.best), *_changed_claims(before, rung, has_gate=has_gate))
        scoped += [(key, statement) for statement in statements]
    yield from group_by_config(scoped, configs)


def run_statements(new: RevisionFits, configs: Sequence[Scope]) -> Iterator[LocatedStatement]:
    """Yield the sentences about the results of this run, which are no effect of the change."""
    if new.run_problem:
        text = "the fit is not known from this run: {}"
        yield LocatedStatement(
            "", Statement(text, (new.run_problem,), Risk.UNKNOWN, _NOT_FROM_THIS_RUN)
        )
    scoped = (
        (key, statement)
        for key in sorted_keys(new.rungs)
        for statement in _compared_with_run(new.rungs[key])
    )
    yield from group_by_config(scoped, configs)


def _worse(before: RungFit | None, after: RungFit) -> Iterator[Statement]:
    """Yield the sentence about a rung that no longer fits, is no longer known to, or hardly does."""
    old, new = before.current if before else None, after.current
    was = f"was {_amount(old)}" if old else ""
    if new is None:
        if old:
            # Without the amount, so that rungs share a line: the block about fits has it.
            yield _unknown("the fit is not known any more", after, Risk.CAUTION, _NOT_ANY_MORE)
        return
    amount = f"{memory_text(new.memory)}{'' if after.is_trusted else _AS_COMMITTED}"
    if not new.fits:
        if old is None or old.fits:
            subject = "no longer fits" if old else _DOES_NOT_FIT
            template = f"the training step {subject}: {amount}{f', {was}' if was else ''}"
            yield Statement(template, (), Risk.CAUTION, f"a step {subject}")
    elif has_little_headroom(new.memory) and (
        old is None or (old.fits and not has_little_headroom(old.memory))
    ):
        free = format_percent(Fraction(max(0, new.memory.headroom), max(1, new.memory.available)))
        template = f"the training step leaves only {free} of the memory free: {amount}{f', {was}' if was else ''}"
        yield Statement(template, (), Risk.CAUTION, "little memory left")


def _changed_claims(
    before: RungFit | None, rung: KnownRung, *, has_gate: bool
) -> Iterator[Statement]:
    """Yield what a committed result claims otherwise than the base: only a job of this run can prove it."""
    old, new = before.current if before else None, rung.current
    if old and new and new.memory.available > old.memory.available:
        values = (amount_text(new.memory.available), amount_text(old.memory.available))
        yield Statement(
            "a device is taken to have {} of memory, previously {}", values, Risk.CAUTION
        )
    if rung.base is None:
        return
    kept, committed = rung.base.current, rung.committed.result
    if kept and committed and _figures(kept) != _figures(committed):
        yield Statement(
            "{} has another result for the same program and flags", (_FILE,), Risk.CAUTION
        )
    if new is None or rung.best.is_trusted or (kept and kept.fits):
        return
    if has_gate and new.fits:
        text = "{} lets it start, and did not before: its result in {} is new, as committed"
        yield Statement(text, ("gate.fit", _FILE), Risk.CAUTION, "gate opened by a committed fit")
    elif kept is None:
        yield Statement("its result in {} is new, as committed", (_FILE,))


def _compared_with_run(rung: KnownRung) -> Iterator[Statement]:
    """Yield the sentence about a job of this run and a committed file that do not agree."""
    if rung.run is None:
        return
    committed = rung.committed.current
    if (result := rung.run.current) is None:
        yield _unknown(
            "the fit is not known from this run", rung.run, Risk.UNKNOWN, _NOT_FROM_THIS_RUN
        )
    elif committed is None:
        text = "{} does not have the result of this run: commit what {} writes"
        yield Statement(text, (_FILE, "tpucfg fit"))
    elif _figures(committed) != _figures(result):
        text = "{} has another result than this run"
        yield Statement(text, (_FILE,), Risk.CAUTION, "a committed fit contradicts this run")


def _unknown(text: str, fit: RungFit, risk: Risk, headline: str) -> Statement:
    if not fit.changes:
        return Statement(f"{text}: {fit.verdict}", (), risk, headline)
    return Statement(
        f"{text}: {fit.verdict} by a change of {{}}", (listed(fit.changes),), risk, headline
    )


def _figures(result: FitResult) -> tuple[object, ...]:
    """Return what two results of one program must have in common; the memory as it is shown."""
    return (_amount(result), result.flops, result.flops_8bit, result.forecast, {*result.files})


def _amount(result: FitResult) -> str:
    return (
        memory_text(result.memory)
        if result.fits
        else f"{_DOES_NOT_FIT}, {memory_text(result.memory)}"
    )


# The program


class CommittedProgramFiles(ProgramFiles):
    """The files below a spec's folder in a commit, each read at most once; links inside the commit are followed."""

    def __init__(self, repository: Repository, commit: str, folder: PurePosixPath) -> None:
        super().__init__(repository.folder)
        self._tree = CommitTree(repository, commit)
        self._prefix = f"{commit}:{folder.as_posix()}/" if folder.parts else f"{commit}:"
        self._known: dict[str, str | None] = {}
        self._remaining_bytes = _MAX_BYTES

    def hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return the hashes of the files that can be read, by path relative to the folder."""
        wanted = [*dict.fromkeys(paths)]
        self._read([path for path in wanted if path not in self._known])
        return {path: value for path in wanted if (value := self._known[path])}

    def hash(self, path: str) -> str | None:
        """Return the hash of one file; None if it cannot be read, or is too large for a program's file."""
        return self.hashes([path]).get(path)

    def _read(self, paths: Sequence[str]) -> None:
        """Hash files that were not read before, all of them by two git processes."""
        self._known.update(dict.fromkeys(paths))
        # One line is one request to git, which resolves dots that lead out of the folder.
        asked = [path for path in paths if _LINE_BREAK not in path and ".." not in path.split("/")]
        chosen: dict[str, TreeEntry] = {}
        requests = [self._prefix + path for path in asked]
        for path, blob in (
            zip(asked, follow_paths(self._tree.repository, requests), strict=True) if asked else ()
        ):
            if (
                blob
                and blob.kind == "blob"
                and blob.size <= min(MAX_SOURCE_BYTES, self._remaining_bytes)
            ):
                self._remaining_bytes -= blob.size
                chosen[path] = TreeEntry(PurePosixPath(path), "file", blob.id, blob.size)
        contents = self._tree.read([*chosen.values()])
        self._known.update(
            (path, content_hash(content)) for path, content in zip(chosen, contents, strict=True)
        )


def program_files(snapshot: Snapshot) -> ProgramFiles:
    """Return the files below the folder of a snapshot's spec."""
    folder = snapshot.spec.parent
    if snapshot.repository is None or snapshot.commit is None or snapshot.exported_to is None:
        return ProgramFiles(folder)
    relative = PurePosixPath(folder.relative_to(snapshot.exported_to).as_posix())
    return CommittedProgramFiles(snapshot.repository, snapshot.commit.id, relative)
