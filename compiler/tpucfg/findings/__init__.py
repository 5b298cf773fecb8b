"""Findings: errors, warnings and notes about a spec, a config or a stack, and their output formats."""

from tpucfg.findings.finding import MAX_FINDINGS, Allowance, Finding, Location, collect, errors
from tpucfg.findings.rules import RULES, Level, Rule

__all__ = ["MAX_FINDINGS", "RULES", "Allowance", "Finding", "Level", "Location", "Rule", "collect", "errors"]
