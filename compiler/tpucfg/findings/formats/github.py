"""For a GitHub workflow: annotations on the pull request's lines.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions#setting-an-error-message
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tpucfg.findings.finding import Finding
from tpucfg.text_format import printable

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:  # noqa: ARG001 - the interface of formats
    """One workflow command a line."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: Finding) -> str:
    location = finding.location
    where = {"file": location.file, "line": location.line, "endLine": location.end_line}
    if location.line == location.end_line:  # GitHub refuses columns that stand in different lines
        where |= {"col": location.column, "endColumn": max(location.column, location.end_column - 1)}
    where["title"] = finding.id
    properties = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in where.items())
    text = "\n".join([finding.message, *finding.details, *([f"help: {finding.help}"] if finding.help else [])])
    return f"::{_COMMANDS[finding.level]} {properties}::{_escaped(text)}"


def _escaped(text: str, also: str = "") -> str:
    for char in "%\r\n" + also:
        text = text.replace(char, f"%{ord(char):02X}")
    return printable(text)
