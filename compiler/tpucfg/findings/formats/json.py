"""Findings as a JSON list of objects, for other programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from tpucfg.findings.finding import Finding, Location
from tpucfg.text_format import json_text


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:  # noqa: ARG001 - the interface of formats
    """Return a JSON list in the order of the findings."""
    return json_text([_entry(finding) for finding in findings])


def _entry(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "level": finding.level,
        "message": finding.message,
        **location_entry(finding.location),
        "help": finding.help,
        "details": list(finding.details),
        "related": [{"message": label, **location_entry(location)} for location, label in finding.related],
    }


def location_entry(location: Location) -> dict[str, Any]:
    """Return a location as keys and values: lines and columns count from 1, and the end is exclusive."""
    return dict(zip(("file", "line", "column", "end_line", "end_column"), location, strict=True))
