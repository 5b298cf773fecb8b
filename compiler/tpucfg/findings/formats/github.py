"""Findings as annotations of a GitHub workflow, shown on the lines of a pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions#setting-an-error-message
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tpucfg.findings.finding import Finding
from tpucfg.text_format import printable

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:  # noqa: ARG001 - the interface of formats
    """Return one workflow command per line."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: Finding) -> str:
    location = finding.location
    properties = {"file": location.file, "line": location.line, "endLine": location.end_line}
    # GitHub rejects columns if the range spans several lines.
    if location.line == location.end_line:
        properties |= {"col": location.column, "endColumn": max(location.column, location.end_column - 1)}
    properties["title"] = finding.id
    property_list = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    text = "\n".join(finding.lines)
    return f"::{_COMMANDS[finding.level]} {property_list}::{_escaped(text)}"


def _escaped(text: str, extra_characters: str = "") -> str:
    # The percent sign is escaped first, because the escapes of the other characters contain it.
    for char in "%\r\n" + extra_characters:
        text = text.replace(char, f"%{ord(char):02X}")
    return printable(text)
