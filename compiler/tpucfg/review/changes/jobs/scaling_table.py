"""Table of the rungs whose figures change: each figure before and after, with the factor between them."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import groupby
from typing import Final, NamedTuple

from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.number_format import UNKNOWN, format_factor, format_figure
from tpucfg.plan import Job, Rung
from tpucfg.plan.rung import rung_figures, shows_parallelism
from tpucfg.spec.project import Number
from tpucfg.text_format import format_value, listed

_RUN_LENGTH: Final = ("global batch", "steps", "examples", "tokens")
"""Columns that are shown together: the third is the product of the first two, and the fourth follows from it."""

Figures = Mapping[str, Number | None]
"""The figures of a rung by column, each with its text; None if the rung has no such figure."""


class ScalingRow(NamedTuple):
    """A rung that is new, or that has other figures than before."""

    size: str
    new_in: tuple[str, ...]
    """The environments in which the rung is new; empty if it existed before."""
    baseline: str
    """The size that `before` belongs to: its own, the rung that it replaces, or the rung below; empty if none."""
    is_rung_below: bool
    """True if the baseline is the rung below."""
    before: Figures
    after: Figures


def scaling_rows(before: Mapping[Scope, Job], after: Mapping[Scope, Job]) -> tuple[ScalingRow, ...]:
    """Return a row for each rung that is new or has other figures, from small to large."""
    old, new = _rungs_by_size(before), _rungs_by_size(after)
    columns = _OptionalColumns.of([*old.values(), *new.values()])
    changed = [
        ScalingRow(size, (), size, False, _figures(old[size], columns), _figures(new[size], columns))
        for size in new
        if size in old and _values(_figures(old[size], columns)) != _values(_figures(new[size], columns))
    ]
    added: dict[tuple[str, str, bool], list[str]] = {}
    for key, (baseline, is_rung_below) in rung_baselines(before, after):
        # In a new environment, only sizes that no environment had before get a row: the figures of others are known.
        if key not in before and (baseline or key.size not in old):
            added.setdefault((key.size, baseline, is_rung_below), []).append(key.environment)
    rungs = {**old, **new}
    rows = [
        ScalingRow(
            size=size,
            new_in=tuple(environments),
            baseline=baseline,
            is_rung_below=is_rung_below,
            before=_figures(rungs[baseline], columns) if baseline else {},
            after=_figures(new[size], columns),
        )
        for (size, baseline, is_rung_below), environments in added.items()
    ]
    return tuple(sorted([*changed, *rows], key=lambda row: (Scope("", row.size).sort_key, row.new_in)))


def scaling_columns(rows: Sequence[ScalingRow]) -> list[str]:
    """Return the columns with a change in some row, and those that explain them."""
    columns = dict.fromkeys(name for row in rows for name in (*row.before, *row.after))
    shown = {name for name in columns if any(_value(row.before, name) != _value(row.after, name) for row in rows)}
    if shown & {"global batch", "steps"}:
        shown |= {*_RUN_LENGTH}
    return [
        name for name in columns if name in shown and any(row.before.get(name) or row.after.get(name) for row in rows)
    ]


def scaling_cell(row: ScalingRow, column: str) -> str:
    """Return a figure before and after, with the factor between them."""
    old, new = row.before.get(column), row.after.get(column)
    if not row.before or (old and new and old.value == new.value):
        return _text(new) + (" (as before)" if column == "examples" and old else "")
    factor = f" ({format_factor(new.value / old.value)})" if old and new else ""
    return f"{_text(old)} → {_text(new)}{factor}"


def _text(number: Number | None) -> str:
    return format_value(number.text, quoted=False) if number else UNKNOWN


def row_label(row: ScalingRow) -> str:
    """Return the row's rung, with the baseline of a new one: `v2-8`, or `v2-8 → v2-32, new in dev`."""
    if not row.new_in:
        return row.size
    baseline = f"{row.baseline} → " if row.baseline else ""
    return f"{baseline}{row.size}, new in {listed(row.new_in)}"


class _OptionalColumns(NamedTuple):
    """The columns that only some ladders need."""

    slices: bool
    parallelism: bool

    @classmethod
    def of(cls, rungs: Sequence[Rung]) -> "_OptionalColumns":
        """Return the columns for the rungs of both revisions."""
        return cls(any(rung.slice.slices > 1 for rung in rungs), shows_parallelism(rungs))


def _figures(rung: Rung, columns: _OptionalColumns) -> Figures:
    """Return the figures of a rung in the order of the columns."""
    texts = dict(rung_figures(rung))
    slices = {"slices": _count(rung.slice.slices)} if columns.slices else {}
    return {
        **slices,
        "hosts": _count(rung.slice.hosts),
        "cores": _count(rung.slice.cores),
        "global batch": _count(rung.batch_size),
        **(_parallelism(rung) if columns.parallelism else {}),
        "steps": _count(rung.train_steps),
        "epochs": _setting(texts.get("epochs")),
        "examples": _count(rung.examples),
        "tokens": _count(rung.tokens),
        "learning rate": _setting(texts.get("learning_rate")),
        **{key: _count(count) for key, count in rung.steps.items() if key != "train_steps"},
    }


def _parallelism(rung: Rung) -> Figures:
    """Return the split of the devices and of the batch."""
    return {
        "data parallel": _count(rung.data_parallel),
        "model parallel": _count(rung.model_parallel),
        "accumulation": _count(rung.grad_accum or 1),
        "micro-batch": _count(int(rung.micro_batch)),
    }


def _values(figures: Figures) -> dict[str, Fraction | None]:
    return {name: _value(figures, name) for name in figures}


def _value(figures: Figures, name: str) -> Fraction | None:
    # Without its text: 1e-3 and 0.001 are one figure.
    number = figures.get(name)
    return number.value if number else None


def _count(count: int | None) -> Number | None:
    return None if count is None else Number(Fraction(count), f"{count:,}")


def _setting(text: str | None) -> Number | None:
    """Return a number with its text as the trainer receives it, as `tpucfg ladder` shows it."""
    return None if text is None else Number(Number.read(text).value, format_figure(text))


def _rungs_by_size(jobs: Mapping[Scope, Job]) -> dict[str, Rung]:
    """Return each rung once: its figures depend on its size alone, and not on its environment."""
    return {key.size: jobs[key].rung for key in sorted_keys(jobs)}


def rung_baselines(before: Mapping[Scope, Job], after: Mapping[Scope, Job]) -> Iterator[tuple[Scope, tuple[str, bool]]]:
    """Yield each added rung with its baseline, and True if the baseline is the rung below."""
    old_ladders = _ladders(before)
    for environment, ladder in _ladders(after).items():
        old_ladder = old_ladders.get(environment, [])
        # A ladder is short and its sizes are unique, so difflib's exact, quadratic matching is cheap here.
        opcodes = SequenceMatcher(None, old_ladder, ladder, autojunk=False).get_opcodes()
        for position, replaced in (added for opcode in opcodes for added in _added_positions(opcode, old_ladder)):
            key = Scope(environment, ladder[position])
            if replaced:
                yield key, (replaced, False)
            elif position and old_ladder:
                yield key, (ladder[position - 1], True)
            else:
                yield key, ("", False)


def _added_positions(opcode: tuple[str, int, int, int, int], old_ladder: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the positions of the rungs that an opcode adds, each with the rung it replaces or an empty text."""
    kind, old_start, old_end, start, end = opcode
    if kind in {"insert", "replace"}:
        # Rungs are paired with those that they replace only if both are equally many; otherwise pairs would be guesses.
        is_one_by_one = old_end - old_start == end - start
        replaced = old_ladder[old_start:old_end] if is_one_by_one else [""] * (end - start)
        yield from zip(range(start, end), replaced, strict=True)


def _ladders(jobs: Mapping[Scope, Job]) -> dict[str, list[str]]:
    """Return the sizes of each environment, from small to large."""
    return {name: [key.size for key in keys] for name, keys in groupby(jobs, key=lambda key: key.environment)}
