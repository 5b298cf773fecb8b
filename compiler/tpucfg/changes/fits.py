"""Changes to the fit of each rung: what the compiler reported before and after."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.changes.fit_statements import fit_statements, run_statements
from tpucfg.changes.revision_fits import KnownRung, RevisionFits, RunFits, read_revision_fits
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement
from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import verdict_text


class FitRow(NamedTuple):
    """The fit of a rung, in the environments where it is the same."""

    size: str
    before: RungFit | None
    """None for a rung that is new, or whose spec named no training step."""
    after: RungFit
    is_change: bool
    """True if the change makes the difference, and not only a job of this run that knows more than the base."""
    environments: tuple[str, ...]
    is_everywhere: bool = False
    """True if these are all environments with a rung of this size."""

    @property
    def differs(self) -> bool:
        """True if the rung is new, or something else is known of it than before."""
        return self.before is None or _known(self.before) != _known(self.after)

    @property
    def growth(self) -> Fraction | None:
        """The growth of the memory as a share of what the step needed before; None if a step is not known to fit."""
        old, new = (fit.current if fit else None for fit in (self.before, self.after))
        if old is None or new is None or not (old.fits and new.fits and old.memory.used):
            return None
        return Fraction(new.memory.used, old.memory.used) - 1


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


def compute_fits(before: CompiledRevision, after: CompiledRevision, run: RunFits | None) -> FitChanges:
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
    return FitChanges(tuple(_rows(old, new)), tuple(statements), tuple(notices), new.problem, new.run_problem)


def _rows(old: RevisionFits, new: RevisionFits) -> Iterator[FitRow]:
    """Yield a row for each rung; environments where it is the same share one."""
    environments: dict[tuple[object, ...], list[tuple[str, FitRow]]] = {}
    for key in sorted_keys(new.rungs):
        row = _row(key, old.rungs.get(key), new.rungs[key])
        shown = (row.size, _shown(row.before), _shown(row.after), row.is_change)
        environments.setdefault(shown, []).append((key.environment, row))
    counts = _count_by_size(new.rungs)
    for members in environments.values():
        names = tuple(name for name, _ in members)
        row = members[0][1]
        yield row._replace(environments=names, is_everywhere=len(names) == counts[row.size])


def _row(key: Scope, old: KnownRung | None, new: KnownRung) -> FitRow:
    before = old.committed if old else None
    texts = [_known(fit) for fit in (before, new.committed, new.best) if fit]
    is_change = before is None or texts[0] != texts[1] or bool(texts[0] and texts[0] != texts[2])
    return FitRow(key.size, before, new.best, is_change, ())


def _known(fit: RungFit) -> str:
    """Return what is known of a rung; empty if that is nothing, whatever the reason."""
    return verdict_text(fit) if fit.current else ""


def _shown(fit: RungFit | None) -> tuple[object, ...]:
    return (verdict_text(fit), fit.changes, fit.is_trusted) if fit else ()


def _count_by_size(keys: Iterable[Scope]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        counts[key.size] = counts.get(key.size, 0) + 1
    return counts
