"""Explain a syntax error of the YAML parser, at the location of the mistake.

The parser stops where it cannot continue, which is often below the mistake: an unclosed quote is noticed at the end of
the file. So common repairs are tried on the lines where the mistake may be; the first with which the parser gets
further is the help. Where none does, the error is reported with the parser's own message.
"""

import re
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, Final

from yaml import MarkedYAMLError

from tpucfg.findings import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.redaction import has_token, redact_row
from tpucfg.text_format import split_lines
from tpucfg.yamldoc.parser import parse_events

_PLAIN_VALUE: Final = r"""(\s*(?:- +)*+[^\s:#][^:]*: +)([^\s\[{"'|>&*!#].*)"""
"""A key with a value that has no quotes. Possessive: else, a long row of dashes would take quadratic time."""
_MAX_TRIED: Final = 1 << 16
"""The characters of a text of which repairs are tried, as each is parsed again: more than those of a long spec."""
_QUOTE_OR_DELETE: Final = (
    "if this is part of a text, put the whole text in quotes; if not, delete it"
)


class _Repair(NamedTuple):
    """Another text of one line."""

    row: str
    start: int
    """The column of the mistake, from 0."""
    message: str
    help: str
    width: int = 0
    """The characters of the mistake; 0 for all up to the end of the line."""


def syntax_finding(error: Any, text: str, name: str) -> Finding:
    """Return the finding for a parser error. `text` is what the parser read."""
    rows, opened = split_lines(text), error.context_mark
    mark = error.problem_mark or opened
    conflict = next((number for number, row in enumerate(rows) if row.startswith("<<<<<<< ")), None)
    if conflict is not None:  # https://git-scm.com/docs/git-merge
        hint = "keep one of the two versions, and delete the lines that start with <<<<<<<, ======= and >>>>>>>"
        return _finding(
            "a merge conflict is not resolved", hint, _range(rows, conflict, 0, name), name
        )
    for line in _suspects(rows, mark, opened) if mark and len(text) <= _MAX_TRIED else ():
        for repair in _repairs(rows[line], _line_above(rows, line)):
            if _error_line("\n".join((*rows[:line], repair.row, *rows[line + 1 :]))) > mark.line:
                location = _range(rows, line, repair.start, name, repair.width)
                has_secret = has_token(repair.row) or redact_row(repair.row) != repair.row
                hint = repair.help.partition(": ")[0] if has_secret else repair.help
                return _finding(repair.message, hint, location, name)
    problem = str(error.problem or error.context)
    closing = re.search("',' or '(.)'", problem)
    hint = f"add a comma, or close with {closing[1]}" if closing else _QUOTE_OR_DELETE
    location = _range(rows, mark.line, mark.column, name, 1) if mark else Location(name)
    start = _range(rows, opened.line, opened.column, name, 1) if closing and opened else location
    row = rows[mark.line] if mark and mark.line < len(rows) else ""
    # In brackets the parser stops at the colon after a missing comma: the mistake is before the colon's key.
    if closing and row[mark.column :].startswith(":"):
        before = row[: mark.column].rstrip()
        location = location._replace(column=max(before.rfind(char) for char in "\t ,[{") + 2)
    return _finding(
        problem,
        hint,
        location,
        name,
        ((start, "opened here"),) if start.point != location.point else (),
    )


def _finding(message: str, hint: str, location: Location, name: str, related: Any = ()) -> Finding:
    language = "JSON" if name.endswith(".json") else "YAML"
    return Finding.of(
        "TPU002", f"this is not {language}: {message}", location, help=hint, related=related
    )


def _range(rows: Sequence[str], line: int, start: int, name: str, width: int = 0) -> Location:
    """Return a range of one line, by default to its end; after the last line with text, the end of that line."""
    if line > (last := max((number for number, row in enumerate(rows) if row.strip()), default=0)):
        line, start, width = last, len(rows[last].rstrip()), 1
    end = start + width if width else len(rows[line].rstrip())
    return Location(name, line + 1, start + 1, line + 1, max(end, start + 1) + 1)


def _error_line(text: str) -> float:
    """Return the line on which the parser stops, from 0; infinite for a text that it reads to its end."""
    try:
        for _ in parse_events(text):
            pass
    except MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        return float(mark.line) if mark else -1
    return inf


def _suspects(rows: Sequence[str], mark: Any, opened: Any) -> Iterator[int]:
    """Yield the lines where the mistake may be: where the parser stopped, above it, and where an open text starts."""
    above = range(min(mark.line, len(rows)) - 1, -1, -1)
    with_text = (
        line for line in above if rows[line].strip() and not rows[line].lstrip().startswith("#")
    )
    open_quotes = (line for line in above if any(rows[line].count(quote) % 2 for quote in "\"'"))
    lines = (mark.line, next(with_text, 0), opened.line if opened else 0, next(open_quotes, 0))
    yield from (line for line in dict.fromkeys(lines) if line < len(rows))


def _line_above(rows: Sequence[str], line: int) -> str:
    above = (
        row for row in reversed(rows[:line]) if row.strip() and not row.lstrip().startswith("#")
    )
    return next(above, "")


def _repairs(row: str, above: str) -> Iterator[_Repair]:
    """Yield the repairs of a line, given the line above it."""
    text, indentation, expected = row.strip(), _indentation(row), _indentation(above)
    if "\t" in row:
        message = "a tab is used where YAML allows only spaces"
        yield _Repair(
            row.replace("\t", "  "), row.index("\t"), message, "replace the tab by spaces", 1
        )
    for quote in "\"'":
        if row.count(quote) % 2:
            yield _Repair(
                row + quote,
                row.rindex(quote),
                "this quoted text is not closed",
                f"close it with {quote}",
            )
    if match := re.fullmatch(_PLAIN_VALUE, row.rstrip()):
        quoted = "'{}'".format(match[2].replace("'", "''"))
        hint = f"put the whole value in quotes: {quoted}"
        yield _Repair(match[1] + quoted, match.start(2), "this value needs quotes", hint)
    if indentation != expected:
        message = f"this line is indented by {indentation}, and the one above it by {expected}"
        hint = f"indent it by {expected}, if it belongs beside the line above"
        yield _Repair(" " * expected + text, indentation, message, hint)
    key, _, value = text.partition(":") if ":" in text else text.partition(" ")
    entry = f"{key}: {value.strip()}".rstrip()
    message = "a key needs a colon and a space before its value"
    yield _Repair(" " * indentation + entry, indentation, message, f"write {entry}")


def _indentation(row: str) -> int:
    return len(row) - len(row.lstrip(" "))
