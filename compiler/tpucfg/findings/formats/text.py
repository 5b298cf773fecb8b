"""Findings as text for people: a line for grep, the source with underlines, the facts and the edit."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from tpucfg.findings.finding import Finding, Location
from tpucfg.text_format import lines, printable

_COLOURS: Final = {"error": "\033[1;31m", "warning": "\033[1;33m", "note": "\033[1;36m"}
_BOLD: Final = "\033[1m"
_END: Final = "\033[0m"
_MAX_WIDTH: Final = 120
"""The characters of a source line that are shown; a longer line is cut around the location."""
_ELLIPSIS: Final = "…"


class _Mark(NamedTuple):
    """An underline in one source line, with its label."""

    location: Location
    sign: str
    label: str


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:
    """Return one paragraph per finding, separated by empty lines."""
    by_file = {file: lines(text) if text else [] for file, text in sources.items()}
    return "\n".join("".join(f"{line}\n" for line in _paragraph(finding, by_file, colour)) for finding in findings)


def _paragraph(finding: Finding, sources: Mapping[str, list[str]], colour: bool) -> Iterator[str]:
    location, message = printable(str(finding.location)), printable(finding.message)
    level = f"{finding.level}[{finding.id}]"
    if colour:
        yield f"{_BOLD}{location}{_END}: {_COLOURS[finding.level]}{level}{_END}: {_BOLD}{message}{_END}"
    else:
        yield f"{location}: {level}: {message}"
    marks = [_Mark(finding.location, "^", ""), *(_Mark(other, "-", label) for other, label in finding.related)]
    shown = [
        mark
        for mark in marks
        if mark.location.file == finding.location.file and _line(mark.location, sources) is not None
    ]
    margin = " " * len(str(max((mark.location.line for mark in shown), default=1)))
    yield from _snippet(shown, sources, margin)
    for mark in marks:
        if mark not in shown and mark.label:
            yield f"{margin} = {printable(f'{mark.location}: {mark.label}')}"
    for detail in finding.details:
        yield f"{margin} = {printable(detail)}"
    if finding.help:
        yield f"help: {printable(finding.help)}"


def _line(location: Location, sources: Mapping[str, list[str]]) -> str | None:
    rows = sources.get(location.file, [])
    return rows[location.line - 1] if 1 <= location.line <= len(rows) else None


def _snippet(marks: Sequence[_Mark], sources: Mapping[str, list[str]], margin: str) -> Iterator[str]:
    if marks:
        yield f"{margin} |"
    by_line = sorted(marks, key=lambda mark: mark.location.line)
    for number, group in groupby(by_line, key=lambda mark: mark.location.line):
        marks_of_line = list(group)
        line = _line(marks_of_line[0].location, sources) or ""
        cut = _cut(line, marks_of_line[0].location)
        yield f"{number:>{len(margin)}} | {_visible(line, cut)}".rstrip()
        for mark in marks_of_line:
            yield f"{margin} | {_underline(line, cut, mark)} {mark.label}".rstrip()


def _cut(line: str, location: Location) -> int:
    """Return how many characters to leave out at the start of a long line, so that the location is visible."""
    return max(0, location.column - 1 - _MAX_WIDTH // 2) if len(line) > _MAX_WIDTH else 0


def _visible(line: str, cut: int) -> str:
    text = "".join(char if char.isprintable() else " " for char in line[cut : cut + _MAX_WIDTH])
    return f"{_ELLIPSIS if cut else ''}{text}{_ELLIPSIS if len(line) > cut + _MAX_WIDTH else ''}"


def _underline(line: str, cut: int, mark: _Mark) -> str:
    start = mark.location.column - 1
    end = mark.location.end_column - 1 if mark.location.end_line == mark.location.line else len(line)
    before = sum(_width(char) for char in line[cut:start]) + (len(_ELLIPSIS) if cut else 0)
    under = sum(_width(char) for char in line[start : min(max(end, start + 1), cut + _MAX_WIDTH)])
    return " " * before + mark.sign * max(under, 1)


def _width(char: str) -> int:
    """Return the terminal columns of a character: wide characters take two, combining ones none."""
    # An unprintable character is shown as a space.
    if not char.isprintable():
        return 1
    return 2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1
