"""Explain a syntax error of the YAML parser, at the location of the mistake.

The parser stops where it cannot continue, which is often below the mistake: an unclosed quote is noticed at the end of
the file. A parser message that matches no pattern here is reported unchanged.
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

_QUOTE: Final = "put the whole value in quotes"
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
    if elsewhere := _merge_conflict(syntax_error) or _quote_of_later_lines(syntax_error, text):
        return elsewhere
    if text.lstrip().startswith("{") and (comment := _json_comment(syntax_error)):
        return comment
    if (column := syntax_error.row(mark).find("{%")) >= 0:
        location = syntax_error.location(mark.line, column, column + 2)
        hint = "write the text that the template would produce"
        return syntax_error.finding("template syntax is not supported", location, hint)
    # libyaml and PyYAML describe a tab in several ways, so it is recognized in the text.
    if syntax_error.rest().startswith("\t"):
        syntax_error = syntax_error._replace(problem="tab character")
    for pattern, explain in _EXPLAINERS.items():
        if re.search(pattern, syntax_error.problem):
            return explain(syntax_error)
    return _from_table(syntax_error)


_LIST_ENTRIES: Final = "write each entry on a line of its own, or the list as [a, b]"
_NO_ESCAPES: Final = "put the text in single quotes, where a backslash is an ordinary character"
_BRACKET: Final = "delete this, or the bracket that closes the document too early"

_TABLE: Final = {
    "tab character": ("a tab is used where YAML allows only spaces", "replace the tab by spaces"),
    "cannot start any token": ("an unquoted value cannot start with {first}", _QUOTE),
    "entries are not allowed": ("a list cannot start on the line of its key", _LIST_ENTRIES),
    "expected '-' indicator": (
        "this line is in a list, and is not an entry of it",
        "start it with a dash",
    ),
    "expected ',' or '(.)'": ("a comma or the closing {0} is missing before this", "add a comma, or close with {0}"),
    "expected node content": ("a value is missing before this", "add the value, or delete the extra punctuation"),
    "unknown escape": ("{first}{second} is not an escape sequence", _NO_ESCAPES),
    "Unicode character escape": ("this escape is not a valid character", "write the character itself"),
    "expected alphabetic or numeric": ("a name must follow this YAML indicator", _QUOTE),
    "expected comment or line break": ("a text that starts with > or | must continue on the next line", _QUOTE),
    "expected <document start>": ("the document ends before this", _BRACKET),
}
"""The message and the edit by the parser's own message.

Numbers are groups of the pattern; `first` and `second` are the characters where the parser stopped.
"""
_ABOUT_THE_WHOLE_VALUE: Final = ("expected alphabetic or numeric", "expected comment or line break")
"""Parser messages for which the mistake is the whole value, not the character at which the parser stopped."""


def _from_table(error: _SyntaxError) -> Finding:
    rest = error.rest()
    characters = {"first": printable(rest[:1]), "second": printable(rest[1:2])}
    opened = error.location(error.context.line, error.context.column) if error.in_brackets else None
    for pattern, (message, hint) in _TABLE.items():
        if match := re.search(pattern, error.problem):
            location = _location_in_table(error, whole_value=pattern in _ABOUT_THE_WHOLE_VALUE)
            groups = match.groups()
            return error.finding(message.format(*groups, **characters), location, hint.format(*groups), opened)
    return error.finding(error.problem, error.location(error.mark.line, error.mark.column), _QUOTE_OR_DELETE)


def _location_in_table(error: _SyntaxError, *, whole_value: bool) -> Location:
    mark = error.context if whole_value and error.context else error.mark
    location = error.location(mark.line, mark.column)
    # In brackets the parser stops at the colon after a missing comma: the mistake is before the colon's key.
    if error.in_brackets and error.rest().startswith(":"):
        before = error.row(error.mark)[: error.mark.column].rstrip()
        location = location._replace(column=max(before.rfind(char) for char in "\t ,[{") + 2)
    return location


# The functions below explain errors that have several causes, or whose location has to be searched for.


def _merge_conflict(error: _SyntaxError) -> Finding | None:
    """Return the finding for a conflict that git has marked: https://git-scm.com/docs/git-merge."""
    for number, row in enumerate(error.rows):
        if row.startswith("<<<<<<< "):
            location = error.location(number, 0, len(row.rstrip()))
            hint = "keep one of the two versions, and delete the lines that start with <<<<<<<, ======= and >>>>>>>"
            return error.finding("a merge conflict is not resolved", location, hint)
    return None


def _json_comment(error: _SyntaxError) -> Finding | None:
    """Return the finding for a comment that starts with // or /*, which YAML reads as a word."""
    for number, row in enumerate(error.rows[: error.mark.line]):
        if row.lstrip().startswith(("//", "/*")):
            location = error.location(number, _indentation(row), len(row.rstrip()))
            return error.finding("JSON has no comments, and comments of YAML start with #", location, "delete it")
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


def _unexpected_colon(error: _SyntaxError) -> Finding:
    """Explain a colon inside an unquoted value, or a line indented deeper than its siblings."""
    row, line = error.row(error.mark), error.mark.line
    # Possessive: without it, a long row of dashes without a colon takes quadratic time.
    key = re.match(r"\s*(?:- +)*+[^\s:#][^:]*: +", row[: error.mark.column])
    if key is None and re.match(r"\s*(?:- +)*+[^\s:#]+:[{\[]", row):
        return _key_without_colon(error, line, _indentation(row))
    if key is None:
        return _wrong_indentation(error)
    value = row[key.end() :].rstrip()
    quoted = printable(value).replace("'", "''")
    location = error.location(line, key.end(), key.end() + len(value))
    return error.finding("this unquoted value contains a colon and a space", location, f"{_QUOTE}: '{quoted}'")


def _missing_colon(error: _SyntaxError) -> Finding:
    """Explain a line that is neither a key with its value nor the continuation of a text."""
    mark = error.context or error.mark
    return _key_without_colon(error, mark.line, mark.column)


def _key_without_colon(error: _SyntaxError, line: int, column: int) -> Finding:
    text = error.rows[line][column:].rstrip()
    key, _, value = text.partition(":") if ":" in text else text.partition(" ")
    location = error.location(line, column, column + len(text))
    hint = printable(f"write {key}: {value.strip()}".rstrip())
    return error.finding("a key needs a colon and a space before its value", location, hint)


def _unexpected_text(error: _SyntaxError) -> Finding:
    """Explain text after the end of a value, or a line whose indentation belongs to no mapping above it."""
    row, line, column = error.row(error.mark), error.mark.line, error.mark.column
    location = error.location(line, column, len(row.rstrip()))
    if not row[:column].strip() and row[column:].startswith("- "):
        if re.search(r":(\s|$)", row):
            location = error.location(line, column, column + 2)
        hint = "delete this, or indent the line below the key of its list"
        return error.finding("an entry of a list is among the keys of a mapping", location, hint)
    if not row[:column].strip():
        return _wrong_indentation(error)
    return error.finding("the value ends before this", location, f"delete this, or {_QUOTE}")


def _wrong_indentation(error: _SyntaxError) -> Finding:
    row, line = error.row(error.mark), error.mark.line
    indentation = _indentation(row)
    location = error.location(line, indentation, indentation + len(row.strip().partition(":")[0]))
    if not (above := _line_above(error)):
        message, hint = "this line is indented, and there is no key above it", "remove the indentation"
        return error.finding(message, location, hint)
    previous_number, previous_line = above
    expected = _indentation(previous_line)
    if expected == indentation and not re.search(r":(\s|$)", previous_line):
        return _key_without_colon(error, previous_number, expected)
    message = f"this line is indented by {indentation}, and the one above it by {expected}"
    finding = error.finding(message, location, f"indent it by {expected}, if it belongs beside the line above")
    return finding._replace(
        related=((error.location(previous_number, expected, len(previous_line.rstrip())), "the line above"),)
    )


def _after_the_document(error: _SyntaxError) -> Finding:
    """Explain a line after the end of the document, which is a first line without a key if a comment follows it."""
    above = _line_above(error)
    return _key_without_colon(error, above[0], 0) if above and re.match(r"[\w-]+:\S", above[1]) else _from_table(error)


def _line_above(error: _SyntaxError) -> tuple[int, str] | None:
    rows = list(enumerate(error.rows[: error.mark.line]))
    return next(((number, row) for number, row in reversed(rows) if row.strip() and row.lstrip()[0] != "#"), None)


def _indentation(row: str) -> int:
    return len(row) - len(row.lstrip())


_EXPLAINERS: Final[dict[str, Callable[[_SyntaxError], Finding]]] = {
    "values are not allowed": _unexpected_colon,
    "expected ':'": _missing_colon,
    "expected key|<block end>": _unexpected_text,
    "expected <document start>": _after_the_document,
    "unexpected (end of stream|document indicator)": _unclosed_quote,
}
