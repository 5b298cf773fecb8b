"""The rungs whose figures change, as a table: each figure before and after, and by how much."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import groupby
from typing import Final, NamedTuple

from tpucfg.diff.change import ConfigKey, sorted_keys
from tpucfg.plan import Job, Rung
from tpucfg.text_format import listed

_SUM: Final = ("global batch", "steps", "examples")
"""Shown together: what one of them means is said by the others."""
_LARGE: Final = 1000
"""From there on a factor is written out."""
_SMALL: Final = Fraction(1, 10_000)
"""Of a whole; what is less is not worth its digits."""

Figures = Mapping[str, Fraction | None]


class Row(NamedTuple):
    """One rung."""

    size: str
    environments: tuple[str, ...]
    """Those in which it is new; empty where it was there before."""
    against: str
    """The size that it is compared with: itself, the rung below, the one in whose place it came; or empty."""
    below: bool
    """Whether that is the rung below."""
    before: Figures
    after: Figures


def scaling_rows(before: Mapping[ConfigKey, Job], after: Mapping[ConfigKey, Job]) -> tuple[Row, ...]:
    """A row for each rung that is new or has other figures, from small to large."""
    old, new = _by_size(before), _by_size(after)
    changed = [
        Row(size, (), size, False, figures(old[size]), figures(new[size]))
        for size in new
        if size in old and figures(old[size]) != figures(new[size])
    ]
    added: dict[tuple[str, str, bool], list[str]] = {}
    for key, (against, below) in _places(before, after):
        # In a new environment only what no environment had before says anything new.
        if key not in before and (against or key.size not in old):
            added.setdefault((key.size, against, below), []).append(key.environment)
    rungs = {**old, **new}
    made = [
        Row(size, tuple(names), against, below, figures(rungs[against]) if against else {}, figures(new[size]))
        for (size, against, below), names in added.items()
    ]
    return tuple(sorted([*changed, *made], key=lambda row: (ConfigKey("", row.size).sort_key, row.environments)))


def figures(rung: Rung) -> Figures:
    """What a rung is made of, in the order of the table."""
    return {
        "hosts": Fraction(rung.slice.hosts),
        "cores": Fraction(rung.slice.cores),
        "global batch": Fraction(rung.batch_size),
        "steps": None if rung.train_steps is None else Fraction(rung.train_steps),
        "epochs": Fraction(rung.epochs) if rung.epochs else None,
        "examples": None if rung.examples is None else Fraction(rung.examples),
        "learning rate": Fraction(rung.learning_rate) if rung.learning_rate else None,
        **{key: Fraction(count) for key, count in rung.steps.items() if key != "train_steps"},
    }


def scaling_columns(of: Sequence[Row]) -> list[str]:
    """The figures worth a column: those that change in some row, and those that they are understood by."""
    every = dict.fromkeys(name for row in of for name in (*row.before, *row.after))
    shown = {name for name in every if any(_differs(row, name) for row in of)}
    if shown & {"global batch", "steps"}:
        shown |= {*_SUM}
    return [name for name in every if name in shown and any(row.before.get(name) or row.after.get(name) for row in of)]


def scaling_cell(row: Row, name: str) -> str:
    """A figure before and after, with the factor between them."""
    old, new = row.before.get(name), row.after.get(name)
    if old == new or not row.before:
        return format_number(new) + (" (as before)" if name == "examples" and old else "")
    return f"{format_number(old)} → {format_number(new)}{f' ({format_factor(new / old)})' if old and new else ''}"


def format_number(value: Fraction | None) -> str:
    """A figure as people write it, exactly."""
    if value is None:
        return "–"
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{float(value):.6g}"


def format_factor(ratio: Fraction) -> str:
    """A factor, to three digits."""
    return f"{float(ratio):.3g}×" if ratio < _LARGE else f"{int(ratio):,}×"


def format_percent(share: Fraction) -> str:
    """A part of a whole, to three digits, and never as none of it where it is some."""
    if 0 < share < _SMALL:
        return f"less than {float(_SMALL):.2%}"
    return f"{float(share * 100):.3g}%"


def row_label(row: Row) -> str:
    """The sizes left and right of the arrows in its cells: `v2-8`, or `v2-8 → v2-32, new in dev`."""
    if not row.environments:
        return row.size
    return f"{f'{row.against} → ' if row.against else ''}{row.size}, new in {listed(row.environments)}"


def _differs(row: Row, name: str) -> bool:
    return row.before.get(name) != row.after.get(name)


def _by_size(jobs: Mapping[ConfigKey, Job]) -> dict[str, Rung]:
    """Each rung once: its figures follow from its size alone."""
    return {key.size: jobs[key].rung for key in sorted_keys(jobs)}


def _places(
    before: Mapping[ConfigKey, Job], after: Mapping[ConfigKey, Job]
) -> Iterator[tuple[ConfigKey, tuple[str, bool]]]:
    """Each new rung with the one below it; with the one that stood in its place, where its neighbours stay."""
    old, new = _ladders(before), _ladders(after)
    for name, ladder in new.items():
        there = old.get(name, [])
        steps = SequenceMatcher(None, there, ladder, autojunk=False).get_opcodes()
        for at, size, gone in ((at, ladder[at], gone) for step in steps for at, gone in _new(step, there)):
            if gone:
                yield ConfigKey(name, size), (gone, False)
            else:
                yield ConfigKey(name, size), ((ladder[at - 1], True) if at and there else ("", False))


def _new(step: tuple[str, int, int, int, int], there: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The positions that a step of an alignment brings; where it exchanges rungs one by one, what each was before."""
    kind, start, end, first, last = step
    if kind in {"insert", "replace"}:
        gone = there[start:end] if end - start == last - first else [""] * (last - first)
        yield from zip(range(first, last), gone, strict=True)


def _ladders(jobs: Mapping[ConfigKey, Job]) -> dict[str, list[str]]:
    """The sizes of each environment, from the bottom."""
    return {name: [key.size for key in keys] for name, keys in groupby(jobs, key=lambda key: key.environment)}
