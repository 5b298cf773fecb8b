"""Findings: errors, warnings and notes about a spec, a config or a stack, and their output formats."""

from tpucfg.findings.finding import (
    FORMATS,
    MAX_FINDINGS,
    Allowance,
    Finding,
    Location,
    collect,
    errors,
    format_counts,
)
from tpucfg.findings.rules import RULES, Level, Rule

__all__ = [
    "FORMATS",
    "MAX_FINDINGS",
    "RULES",
    "Allowance",
    "Finding",
    "Level",
    "Location",
    "Rule",
    "collect",
    "errors",
    "format_counts",
]
