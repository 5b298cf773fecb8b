"""Findings: the errors, warnings and notes about a spec or a config, and the ways to print them."""

from tpucfg.findings.finding import MAX_FINDINGS, Finding, Level, Location, collect, errors
from tpucfg.findings.rules import RULES, Rule

__all__ = ["MAX_FINDINGS", "RULES", "Finding", "Level", "Location", "Rule", "collect", "errors"]
