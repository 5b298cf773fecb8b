"""Impact of a change between two specs, as tests assert it."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spec_factory import CATALOG, project
from tpucfg.changes.config_diff import config_difference
from tpucfg.changes.costs import CostChanges, compute_costs
from tpucfg.changes.figures import changed_columns, row_label, rung_cell
from tpucfg.changes.impact import Impact, compute_impact
from tpucfg.changes.records import RevisionRecords
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.git.snapshots import Snapshot
from tpucfg.render.pipeline import compile_project


def compiled_revision(data: Any | None) -> CompiledRevision:
    """Return a revision with this spec, or without one."""
    snapshot = Snapshot("x", Path("tpucfg.yaml"), "tpucfg.yaml", exists=data is not None)
    if data is None:
        return CompiledRevision(snapshot, None, (), (), "")
    parsed = project(data)
    compiled = compile_project(parsed, CATALOG)
    return CompiledRevision(
        snapshot, parsed, compiled.request_bodies, compiled.findings, parsed.document.text
    )


def impact(before: Any | None, after: Any | None) -> Impact:
    """Return the impact of the change."""
    revisions = compiled_revision(before), compiled_revision(after)
    return compute_impact(
        *revisions, config_difference(*(revision.configs for revision in revisions))
    )


def statements(before: Any | None, after: Any | None) -> list[str]:
    """Return the statements about the change as plain text."""
    return [located.plain for located in impact(before, after).statements]


def scaling_table(before: Any | None, after: Any | None) -> dict[str, dict[str, str]]:
    """Return the cells of the scaling table by rung and column."""
    rows = impact(before, after).rows
    return {
        row_label(row): {name: rung_cell(row, name) for name in changed_columns(rows)}
        for row in rows
    }


def costs(
    before: Any | None,
    after: Any | None,
    recorded: Mapping[str, float] = MappingProxyType({}),
    recorded_by_head: Mapping[str, float] | None = None,
) -> CostChanges:
    """Return the changes to the cost; the records of `dev` are examples per second by size, and stay by default."""
    records = [
        RevisionRecords(
            {"dev": {size: Fraction(str(rate)) for size, rate in rates.items()}} if rates else {}
        )
        for rates in (recorded, recorded if recorded_by_head is None else recorded_by_head)
    ]
    return compute_costs(
        compiled_revision(before), compiled_revision(after), (records[0], records[1])
    )
