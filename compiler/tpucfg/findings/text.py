"""Findings as text for terminals: a headline that grep finds, the underlined source, the details and the help."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from tpucfg.findings.finding import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.text_format import is_visible, printable, split_lines

_COLOURS: Final = {"error": "\033[1;31m", "warning": "\033[1;33m", "note": "\033[1;36m"}
_BOLD: Final = "\033[1m"
_RESET: Final = "\033[0m"
_MAX_WIDTH: Final = 120
"""Maximum characters of a source line that are shown; a longer line is shortened around the location."""
_ELLIPSIS: Final = "…"


class _Underline(NamedTuple):
    """An underline in one source line, with its label."""

    location: Location
    character: str
    label: str


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:
    """Return one paragraph per finding, separated by empty lines."""
    lines_by_file = {file: split_lines(text) if text else [] for file, text in sources.items()}
    return "\n".join(
        "".join(f"{line}\n" for line in _paragraph(finding, lines_by_file, colour))
        for finding in findings
    )


def _paragraph(finding: Finding, sources: Mapping[str, list[str]], colour: bool) -> Iterator[str]:
    location, message = printable(str(finding.location)), finding.message
    level = f"{finding.level}[{finding.id}]"
    bold, of_level, reset = (_BOLD, _COLOURS[finding.level], _RESET) if colour else ("", "", "")
    yield f"{bold}{location}{reset}: {of_level}{level}{reset}: {bold}{message}{reset}"
    marks = [
        _Underline(finding.location, "^", ""),
        *(_Underline(other, "-", label) for other, label in finding.related),
    ]
    in_file = (mark for mark in marks if mark.location.file == finding.location.file)
    quoted_marks = [mark for mark in in_file if _source_line(mark.location, sources) is not None]
    margin = " " * len(str(max((mark.location.line for mark in quoted_marks), default=1)))
    yield from _snippet(quoted_marks, sources, margin)
    for mark in marks:
        if mark not in quoted_marks and mark.label:
            yield f"{margin} = {printable(f'{mark.location}: {mark.label}')}"
    for detail in finding.details:
        yield f"{margin} = {detail}"
    if finding.help:
        yield f"help: {finding.help}"


def _source_line(location: Location, sources: Mapping[str, list[str]]) -> str | None:
    lines = sources.get(location.file, [])
    return lines[location.line - 1] if 1 <= location.line <= len(lines) else None


def _snippet(
    marks: Sequence[_Underline], sources: Mapping[str, list[str]], margin: str
) -> Iterator[str]:
    if marks:
        yield f"{margin} |"
    by_line = sorted(marks, key=lambda mark: mark.location.line)
    for number, group in groupby(by_line, key=lambda mark: mark.location.line):
        marks_of_line = list(group)
        line = _source_line(marks_of_line[0].location, sources) or ""
        omitted = _omitted_start(line, marks_of_line[0].location)
        yield f"{number:>{len(margin)}} | {_visible_part(line, omitted)}".rstrip()
        for mark in marks_of_line:
            yield f"{margin} | {_underline(line, omitted, mark)} {mark.label}".rstrip()


def _omitted_start(line: str, location: Location) -> int:
    """Return the number of characters to omit at the start of a long line, so that the location is visible."""
    return max(0, location.column - 1 - _MAX_WIDTH // 2) if len(line) > _MAX_WIDTH else 0


def _visible_part(line: str, omitted: int) -> str:
    text = "".join(
        char if is_visible(char) else " " for char in line[omitted : omitted + _MAX_WIDTH]
    )
    return f"{_ELLIPSIS if omitted else ''}{text}{_ELLIPSIS if len(line) > omitted + _MAX_WIDTH else ''}"


def _underline(line: str, omitted: int, mark: _Underline) -> str:
    start = mark.location.column - 1
    end = (
        mark.location.end_column - 1 if mark.location.end_line == mark.location.line else len(line)
    )
    indent_width = sum(_width(char) for char in line[omitted:start]) + (
        len(_ELLIPSIS) if omitted else 0
    )
    underline_width = sum(
        _width(char) for char in line[start : min(max(end, start + 1), omitted + _MAX_WIDTH)]
    )
    return " " * indent_width + mark.character * max(underline_width, 1)


def _width(char: str) -> int:
    """Return the terminal columns of a character: wide characters take two, combining ones none."""
    # An invisible character is shown as a space.
    if not is_visible(char):
        return 1
    return (
        2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1
    )
