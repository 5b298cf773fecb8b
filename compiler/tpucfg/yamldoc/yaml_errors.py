"""Explain a syntax error of the YAML parser, at the location of the mistake.

The parser stops where it cannot continue, which is often below the mistake: an unclosed quote is noticed at the end of
the file. What has no explanation here is reported with the parser's own message.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from yaml import MarkedYAMLError, ScalarEvent

from tpucfg.findings import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.text_format import printable, split_lines
from tpucfg.yamldoc.parser import parse_events

_QUOTE_OR_DELETE: Final = "if this is part of a text, put the whole text in quotes; if not, delete it"


class _SyntaxError(NamedTuple):
    """The parser's error, and the text that it read. Marks, lines and columns count from 0 here."""

    problem: str
    mark: Any
    """The position where the parser stopped."""
    context: Any
    """The start of the construct that the parser could not end, or None."""
    in_brackets: bool
    rows: list[str]
    name: str

    def row(self, mark: Any) -> str:
        """Return the line of a mark; an empty line after the end of the text."""
        return self.rows[mark.line] if mark.line < len(self.rows) else ""

    def rest(self) -> str:
        """Return the text of the line from the position where the parser stopped."""
        return self.row(self.mark)[self.mark.column :]

    def location(self, line: int, start: int, end: int = 0) -> Location:
        """Return a range of one line, at least one character long."""
        with_text = [number for number, row in enumerate(self.rows) if row.strip()]
        # The parser may stop after the last line with text: then the finding is at the end of that line.
        if line > (last := with_text[-1] if with_text else 0):
            line, start, end = last, len(self.rows[last].rstrip()), 0
        return Location(self.name, line + 1, start + 1, line + 1, max(end, start + 1) + 1)

    def finding(self, message: str, location: Location, help: str, opened: Location | None = None) -> Finding:
        """Return the finding. `opened` is the location of the bracket that is not closed."""
        language = "JSON" if self.name.endswith(".json") else "YAML"
        related = ((opened, "opened here"),) if opened and opened[:3] != location[:3] else ()
        return Finding.of("TPU002", f"this is not {language}: {message}", location, help=help, related=related)


def syntax_finding(error: Any, text: str, name: str) -> Finding:
    """Return the finding for a parser error. `text` is what the parser read."""
    problem, mark = str(error.problem or error.context), error.problem_mark or error.context_mark
    syntax_error = _SyntaxError(
        problem, mark, error.context_mark, "flow" in str(error.context), split_lines(text), name
    )
    if mark is None:
        return syntax_error.finding(problem, Location(name), _QUOTE_OR_DELETE)
    elsewhere = _merge_conflict(syntax_error) or _quote_of_later_lines(syntax_error, text)
    return elsewhere or _explained(syntax_error) or _unexplained(syntax_error)


def _explained(error: _SyntaxError) -> Finding | None:
    # libyaml and PyYAML describe a tab in several ways, so it is recognized in the text.
    if error.rest().startswith("\t"):
        location = error.location(error.mark.line, error.mark.column)
        return error.finding("a tab is used where YAML allows only spaces", location, "replace the tab by spaces")
    explain = next((explain for pattern, explain in _EXPLAINERS.items() if re.search(pattern, error.problem)), None)
    return explain(error) if explain else None


def _unexplained(error: _SyntaxError) -> Finding:
    opened = error.location(error.context.line, error.context.column) if error.in_brackets else None
    closing = re.search("',' or '(.)'", error.problem)
    hint = f"add a comma, or close with {closing[1]}" if closing else _QUOTE_OR_DELETE
    location = error.location(error.mark.line, error.mark.column)
    # In brackets the parser stops at the colon after a missing comma: the mistake is before the colon's key.
    if opened and error.rest().startswith(":"):
        before = error.row(error.mark)[: error.mark.column].rstrip()
        location = location._replace(column=max(before.rfind(char) for char in "\t ,[{") + 2)
    return error.finding(error.problem, location, hint, opened)


def _merge_conflict(error: _SyntaxError) -> Finding | None:
    """Return the finding for a conflict that git has marked: https://git-scm.com/docs/git-merge."""
    for number, row in enumerate(error.rows):
        if row.startswith("<<<<<<< "):
            location = error.location(number, 0, len(row.rstrip()))
            hint = "keep one of the two versions, and delete the lines that start with <<<<<<<, ======= and >>>>>>>"
            return error.finding("a merge conflict is not resolved", location, hint)
    return None


def _unclosed_quote(error: _SyntaxError) -> Finding:
    mark = error.context or error.mark
    quote = error.row(mark)[mark.column : mark.column + 1]
    location = error.location(mark.line, mark.column)
    return error.finding("this quoted text is never closed", location, f"close it with {quote}")


def _quote_of_later_lines(error: _SyntaxError, text: str) -> Finding | None:
    """Return the finding for a quote that is not closed, if the first quote of a later value has closed it."""
    last: Any = None
    with suppress(MarkedYAMLError):
        for event in parse_events(text):
            last = event if isinstance(event, ScalarEvent) else last
    if last is None or last.style not in ("'", '"') or last.end_mark.line != error.mark.line:
        return None
    first, *later = (row for row in error.rows[last.start_mark.line : error.mark.line + 1] if row.strip())
    # The lines of a text in quotes are indented deeper than its key; the keys after it are not.
    if all(_indentation(row) > _indentation(first) for row in later):
        return None
    location = error.location(last.start_mark.line, last.start_mark.column)
    message = f"this quoted text is not closed before line {error.mark.line + 1}"
    return error.finding(message, location, f"close it with {last.style}")


def _unexpected_colon(error: _SyntaxError) -> Finding | None:
    """Explain a colon inside an unquoted value, or a line above that has no space behind its colon."""
    row, line = error.row(error.mark), error.mark.line
    # Possessive: without it, a long row of dashes without a colon takes quadratic time.
    key = re.match(r"\s*(?:- +)*+[^\s:#][^:]*: +", row[: error.mark.column])
    if key:
        value = row[key.end() :].rstrip()
        quoted = printable(value).replace("'", "''")
        location = error.location(line, key.end(), key.end() + len(value))
        hint = f"put the whole value in quotes: '{quoted}'"
        return error.finding("this unquoted value contains a colon and a space", location, hint)
    if re.match(r"\s*(?:- +)*+[^\s:#]+:[{\[]", row):
        return _key_without_colon(error, line, _indentation(row))
    return _wrong_indentation(error)


def _wrong_indentation(error: _SyntaxError) -> Finding | None:
    """Explain a first key of a line whose indentation is none above, or that follows a line without a colon."""
    row, above = error.row(error.mark), _line_above(error)
    indentation = _indentation(row)
    if above is None or not re.match(r"\s*[^\s:#-][^:]*:(\s|$)", row):
        return None
    expected = _indentation(above[1])
    if expected == indentation:
        has_colon = re.search(r":(\s|$)", above[1])
        return None if has_colon else _key_without_colon(error, above[0], expected)
    message = f"this line is indented by {indentation}, and the one above it by {expected}"
    location = error.location(error.mark.line, indentation, row.index(":"))
    hint = f"indent it by {expected}, if it belongs beside the line above"
    related = error.location(above[0], expected, len(above[1].rstrip()))
    return error.finding(message, location, hint)._replace(related=((related, "the line above"),))


def _missing_colon(error: _SyntaxError) -> Finding:
    start = error.context or error.mark
    return _key_without_colon(error, start.line, start.column)


def _after_the_document(error: _SyntaxError) -> Finding | None:
    """Explain a first line without a space behind its colon, which a comment follows."""
    above = _line_above(error)
    return _key_without_colon(error, above[0], 0) if above and re.match(r"[\w-]+:\S", above[1]) else None


def _key_without_colon(error: _SyntaxError, line: int, column: int) -> Finding:
    """Explain a line that is neither a key with its value nor the continuation of a text."""
    text = error.rows[line][column:].rstrip()
    key, _, value = text.partition(":") if ":" in text else text.partition(" ")
    location = error.location(line, column, column + len(text))
    hint = printable(f"write {key}: {value.strip()}".rstrip())
    return error.finding("a key needs a colon and a space before its value", location, hint)


def _line_above(error: _SyntaxError) -> tuple[int, str] | None:
    rows = list(enumerate(error.rows[: error.mark.line]))
    return next(((number, row) for number, row in reversed(rows) if row.strip() and row.lstrip()[0] != "#"), None)


def _indentation(row: str) -> int:
    return len(row) - len(row.lstrip())


_EXPLAINERS: Final[dict[str, Callable[[_SyntaxError], Finding | None]]] = {
    "values are not allowed": _unexpected_colon,
    "expected ':'": _missing_colon,
    "expected key": _wrong_indentation,
    "expected <document start>": _after_the_document,
    "unexpected (end of stream|document indicator)": _unclosed_quote,
}
"""By a part of the parser's message: the function that explains it, or returns None for the parser's own text."""
