"""Changes to the fit of each rung: the compiler's results before and after, and the sentences about them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.changes.describe import group_by_config
from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.changes.revision_fits import KnownRung, RevisionFits, RunFits, read_revision_fits
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.fit.fit_file import FitResult, Memory
from tpucfg.fit.fit_findings import MIN_HEADROOM
from tpucfg.fit.rung_fit import RungFit, amount_text, memory_text, short_amount, verdict_text
from tpucfg.git.trees import FIT_FILE
from tpucfg.grouped import grouped
from tpucfg.number_format import format_percent
from tpucfg.text_format import listed

_FILE: Final = str(FIT_FILE)
_AS_COMMITTED: Final = ", as committed"
_MAX_GRANT: Final = Fraction(21, 20)
"""The largest share of a device's memory that the compiler can grant: on v5p it is 95.73 GiB of a stated 95."""
_DOES_NOT_FIT: Final = "does not fit"
_NOT_ANY_MORE: Final = "fit not known any more"
_NOT_FROM_THIS_RUN: Final = "fit not known from this run"


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
    rows = [_row(key, old.rungs.get(key), new.rungs[key]) for key in sorted_keys(new.rungs)]
    counts = Counter(row.size for row in rows)
    shown = (((row.size, _shown(row.before), _shown(row.after), row.is_change), row) for row in rows)
    for same in grouped(shown).values():
        names = tuple(name for row in same for name in row.environments)
        yield same[0]._replace(environments=names, is_everywhere=len(names) == counts[same[0].size])


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
        yield LocatedStatement("", Statement("{} cannot be read: {}", (_FILE, new.problem), Risk.CAUTION))
    scoped: list[tuple[Scope, Statement]] = []
    for key in sorted_keys(new.rungs):
        rung, before = new.rungs[key], old.rungs[key].committed if key in old.rungs else None
        statements = (
            *_worse(before, rung.best, new),
            *_rewritten(rung),
            *_impossible(before, rung),
            *_renewed(before, rung, has_gate=has_gate),
        )
        scoped += [(key, statement) for statement in statements]
    yield from group_by_config(scoped, configs)


def run_statements(new: RevisionFits, configs: Sequence[Scope]) -> Iterator[LocatedStatement]:
    """Yield the sentences about the results of this run, which are no effect of the change."""
    if new.run_problem:
        text = "the fit is not known from this run: {}"
        yield LocatedStatement("", Statement(text, (new.run_problem,), Risk.UNKNOWN, _NOT_FROM_THIS_RUN))
    scoped = ((key, statement) for key in sorted_keys(new.rungs) for statement in _contradicted(new.rungs[key]))
    yield from group_by_config(scoped, configs)


# The base and the head


def _worse(before: RungFit | None, after: RungFit, revision: RevisionFits) -> Iterator[Statement]:
    """Yield the sentence about a rung that no longer fits, is no longer known to, or hardly does."""
    old, new = before.current if before else None, after.current
    was = f"was {_amount(old)}" if old else ""
    if new is None:
        if old:
            reason, values = _unknown_reason(after, revision)
            # Without the amount, so that rungs share a line: the block about fits has it.
            yield Statement(f"the fit is not known any more, as {reason}", values, Risk.CAUTION, _NOT_ANY_MORE)
        return
    amount = f"{memory_text(new.memory)}{'' if after.is_trusted else _AS_COMMITTED}"
    if not new.fits:
        if old is None or old.fits:
            subject = "no longer fits" if old else _DOES_NOT_FIT
            template = f"the training step {subject}: {amount}{f', {was}' if was else ''}"
            yield Statement(template, (), Risk.CAUTION, f"a step {subject}")
    elif _is_tight(new.memory) and (old is None or (old.fits and not _is_tight(old.memory))):
        free = format_percent(Fraction(max(0, new.memory.headroom), max(1, new.memory.available)))
        template = f"the training step leaves only {free} of the memory free: {amount}{f', {was}' if was else ''}"
        yield Statement(template, (), Risk.CAUTION, "little memory left")


def _impossible(before: RungFit | None, rung: KnownRung) -> Iterator[Statement]:
    """Yield the sentence about a result by which a device has more memory than it has."""
    old, new = before.current if before else None, rung.current
    if new is None or rung.device_bytes is None or new.memory.available <= _MAX_GRANT * rung.device_bytes:
        return
    if old is None or old.memory.available != new.memory.available:
        amounts = f"{amount_text(new.memory.available)} instead of {short_amount(int(rung.device_bytes))}"
        text = f"a device is taken to have {amounts}: an XLA flag or an edited result raises the limit"
        yield Statement(text, (), Risk.CAUTION, "memory limit raised")


def _is_tight(memory: Memory) -> bool:
    return memory.headroom < MIN_HEADROOM * memory.available


def _unknown_reason(fit: RungFit, revision: RevisionFits) -> tuple[str, tuple[str, ...]]:
    """Return the reason why a fit is not known, as a template and its values."""
    if revision.problem:
        return "{} cannot be read", (_FILE,)
    if fit.result is None:
        return "{} has no result of it", (_FILE,)
    return "{} changed since it was compiled", (listed(fit.changes),)


def _renewed(before: RungFit | None, rung: KnownRung, *, has_gate: bool) -> Iterator[Statement]:
    """Yield the sentences about a committed result that replaces an outdated or missing one.

    Without it, the fit would not be known any more, so a result that is forged only has to look new.
    """
    if rung.unlisted:
        text = "{} no longer lists {}, which still exists: a change of it would leave the result as it is"
        yield Statement(text, (_FILE, listed(rung.unlisted)), Risk.CAUTION)
    old, new = before.current if before else None, rung.committed.current
    if rung.base is None or rung.base.current or new is None or rung.best.is_trusted:
        return
    changes = (listed(rung.base.changes),) if rung.base.changes else ()
    if has_gate and new.fits:
        reason = ", which is new since a change of {}" if changes else ""
        text = f"{{}} lets it start, as the result in {{}} fits{reason}: a committed result proves nothing"
        yield Statement(text, ("gate.fit", _FILE, *changes), Risk.CAUTION, "gate passed by a committed fit")
    elif changes and old and _figures(old) == _figures(new):
        text = "the result in {} is new since a change of {}, with the same figures: a committed result proves nothing"
        yield Statement(text, (_FILE, *changes))


# Two results of one program


def _rewritten(rung: KnownRung) -> Iterator[Statement]:
    """Yield the sentence about a committed result that changed although the job and the program did not."""
    old, new = rung.base.current if rung.base else None, rung.committed.result
    if old is None or new is None or old == new:
        return
    if _figures(old) == _figures(new):
        return
    text = "{} has another result for the same program and flags: {} → {}"
    values = (_FILE, _figures(old, with_versions=True), _figures(new, with_versions=True))
    if (old.compiler, old.stablehlo) == (new.compiler, new.stablehlo):
        text += ", though nothing that a compilation depends on differs: it was edited by hand"
        yield Statement(text, values, Risk.CAUTION, "a fit edited by hand")
        return
    # A lower figure is what a forged result would have, and a version is written as easily as a figure.
    is_better = new.fits > old.fits or (new.fits == old.fits and new.memory.used < old.memory.used)
    yield Statement(text, values, Risk.CAUTION if is_better else Risk.NONE)


def _contradicted(rung: KnownRung) -> Iterator[Statement]:
    """Yield the sentence about a job of this run and a committed file that do not agree."""
    if rung.run is None:
        return
    if (result := rung.run.current) is None:
        yield _missing_from_run(rung.run)
        return
    committed = rung.committed.current
    if committed is None:
        state = "outdated" if rung.committed.result else "missing"
        text = f"the result of this run is {state} in {{}}: commit what {{}} writes"
        yield Statement(text, (_FILE, "tpucfg fit"))
    elif _figures(committed) != _figures(result):
        text = "{} has another result than this run: {} against {}"
        values = (_FILE, _figures(committed, with_versions=True), _figures(result, with_versions=True))
        yield Statement(text, values, Risk.CAUTION, "a committed fit contradicts this run")


def _missing_from_run(fit: RungFit) -> Statement:
    reason, values = "its job has no result of it", tuple[str, ...]()
    if fit.result:
        reason, values = "the result of its job is of another version of the program ({})", (listed(fit.changes),)
    return Statement(f"the fit is not known from this run: {reason}", values, Risk.UNKNOWN, _NOT_FROM_THIS_RUN)


def _figures(result: FitResult, *, with_versions: bool = False) -> str:
    """Return the figures that two results of one program must have in common; the memory is rounded for display."""
    compute = f"{result.flops:,} FLOPs and {result.flops_8bit:,} of 8 bits, {_forecast(result)}"
    versions = f" (jax {result.compiler.jax}, libtpu {result.compiler.libtpu})" if with_versions else ""
    return f"{_amount(result)}, {compute}{versions}"


def _forecast(result: FitResult) -> str:
    forecast = result.forecast
    if forecast is None:
        return "no forecast"
    return f"a model's step of {forecast.seconds:g} s{'' if forecast.is_reliable else ', not reliable'}"


def _amount(result: FitResult) -> str:
    return memory_text(result.memory) if result.fits else f"{_DOES_NOT_FIT}, {memory_text(result.memory)}"
