"""The errors of a spec that stop `pulumi up`: those about what its resources follow from.

A batch that does not divide is no reason to leave a member on a bucket.
"""

from collections.abc import Sequence
from typing import Final

from tpucfg.findings import RULES, Finding, errors
from tpucfg.spec import Project
from tpucfg.spec.recovery import section_at

FIGURES: Final = frozenset({"training", "probe", "gate", "tune", "prices"})
"""The sections of a spec from which no resource follows."""


def stopping_errors(project: Project | None, findings: Sequence[Finding]) -> list[Finding]:
    """Return the errors that stop an update, all of them if no project, or only a part of it, could be read."""
    problems = list(errors(findings))
    if project is None or not project.broken <= FIGURES:
        return problems
    root = project.document.root
    return [
        finding
        for finding in problems
        if RULES[finding.id].stops_stack
        and not (root and section_at(root, finding.location) in FIGURES)
    ]
