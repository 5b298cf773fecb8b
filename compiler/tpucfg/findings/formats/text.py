"""For people: a line that can be grepped, the source with its places underlined, and the edit that ends it."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tpucfg.findings.model import Finding, Place

_COLOURS: Final = {"error": "\033[1;31m", "warning": "\033[1;33m", "note": "\033[1;36m"}
_BOLD: Final = "\033[1m"
_END: Final = "\033[0m"
_WIDEST: Final = 120
"""Characters of a source line that are shown; a longer one is cut around the place."""


class _Mark(NamedTuple):
    """What is underlined in one line, and what is said about it."""

    place: Place
    sign: str
    label: str


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:
    """Each finding in its own paragraph."""
    return "\n".join("".join(f"{line}\n" for line in _paragraph(finding, sources, colour)) for finding in findings)


def _paragraph(finding: Finding, sources: Mapping[str, str], colour: bool) -> Iterator[str]:
    level = f"{finding.level}[{finding.id}]"
    if colour:
        yield f"{_BOLD}{finding.place}{_END}: {_COLOURS[finding.level]}{level}{_END}: {_BOLD}{finding.message}{_END}"
    else:
        yield f"{finding.place}: {level}: {finding.message}"
    marks = [_Mark(finding.place, "^", ""), *(_Mark(place, "-", said) for place, said in finding.related)]
    shown = [mark for mark in marks if mark.place.file == finding.place.file and sources.get(mark.place.file)]
    margin = len(str(max((mark.place.line for mark in shown), default=1)))
    yield from _snippet(shown, sources, margin)
    for mark in marks:
        if mark not in shown and mark.label:
            yield f"{' ' * margin} = {mark.place}: {mark.label}"
    for detail in finding.details:
        yield f"{' ' * margin} = {detail}"
    if finding.help:
        yield f"help: {finding.help}"


def _snippet(marks: Sequence[_Mark], sources: Mapping[str, str], margin: int) -> Iterator[str]:
    if marks:
        yield f"{' ' * margin} |"
    for mark in sorted(marks):
        lines = sources[mark.place.file].splitlines() or [""]
        if mark.place.line > len(lines):
            continue
        text, underline = _underlined(lines[mark.place.line - 1], mark)
        yield f"{mark.place.line:>{margin}} | {text}".rstrip()
        yield f"{' ' * margin} | {underline} {mark.label}".rstrip()


def _underlined(line: str, mark: _Mark) -> tuple[str, str]:
    start = mark.place.column - 1
    end = mark.place.end_column - 1 if mark.place.end_line == mark.place.line else len(line)
    cut = max(0, start - _WIDEST // 2) if len(line) > _WIDEST else 0
    visible = [char if char.isprintable() else " " for char in line[cut : cut + _WIDEST]]
    before = sum(_width(char) for char in visible[: start - cut])
    under = sum(_width(char) for char in visible[start - cut : max(end, start + 1) - cut])
    return "".join(visible), " " * before + mark.sign * max(under, 1)


def _width(char: str) -> int:
    """Columns of a terminal: a wide character takes two, so that the underline stays below its value."""
    return 2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1
