"""Changes to ladders: rungs that are added, removed or replaced."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from tpucfg.changes.describe import format_keys
from tpucfg.changes.facts import Scope
from tpucfg.changes.statements import LocatedStatement, Statement, group_statements
from tpucfg.number_format import format_factor
from tpucfg.plan import Job
from tpucfg.review.changes.jobs.scaling_table import ScalingRow
from tpucfg.text_format import listed

_MAX_NAMES: Final = 16
"""Environments, and replaced rungs, that are named."""
_UNKNOWN_FACTOR: Final = "–"


def ladder_statements(
    before: Mapping[Scope, Job], after: Mapping[Scope, Job], rows: Sequence[ScalingRow]
) -> Iterator[LocatedStatement]:
    """Yield the rungs that only one revision has; `rows` are those of the scaling table."""
    yield from _removed(before, after, rows)
    replacements: dict[tuple[tuple[str, ...], str], list[ScalingRow]] = {}
    for row in rows:
        if not row.new_in or not row.baseline:
            continue
        if row.is_rung_below:
            template = f"{{}} added to the ladder, with {_cores_factor(row)} the cores of {{}}, the rung below"
            yield LocatedStatement(listed(row.new_in, _MAX_NAMES), Statement(template, (row.size, row.baseline)))
        else:
            replacements.setdefault((row.new_in, _cores_factor(row)), []).append(row)
    for (environments, factor), replaced in replacements.items():
        yield LocatedStatement(listed(environments, _MAX_NAMES), _replacement(replaced, factor))


def _removed(
    before: Mapping[Scope, Job], after: Mapping[Scope, Job], rows: Sequence[ScalingRow]
) -> Iterator[LocatedStatement]:
    replaced = {Scope(name, row.baseline) for row in rows for name in row.new_in if not row.is_rung_below}
    # A removed environment has a statement of its own, which includes its rungs.
    environments = {key.environment for key in after}
    removed = [key for key in before if key not in after and key.environment in environments and key not in replaced]
    yield from group_statements([(key, Statement("removed from the ladder")) for key in removed], format_keys)


def _replacement(rows: Collection[ScalingRow], factor: str) -> Statement:
    """Return one sentence for rungs that replace others, all with the factor between their cores."""
    named = [*rows][:_MAX_NAMES]
    parts = ["{} replaces {}" for _ in named]
    if len(rows) > len(named):
        parts.append(f"{len(rows) - len(named)} more are replaced")
    if len(rows) == 1:
        cores = "with the same number of cores" if factor == "1×" else f"with {factor} its cores"
    else:
        cores = "each with the same number of cores" if factor == "1×" else f"each with {factor} the cores"
    values = tuple(size for row in named for size in (row.size, row.baseline))
    return Statement(f"{listed(parts, len(parts), ' and ')}, {cores}", values)


def _cores_factor(row: ScalingRow) -> str:
    old, new = row.before.get("cores"), row.after.get("cores")
    return format_factor(new.value / old.value) if old and new else _UNKNOWN_FACTOR
