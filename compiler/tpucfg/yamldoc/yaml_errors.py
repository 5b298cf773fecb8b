"""Text that is not YAML: the parser's complaint, said in words, at the place where the mistake was made.

The parser stops where it can go no further, which is often a line below the mistake: an unclosed quotation is noticed
at the end of the file. What no table here knows is passed on in the parser's own words.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.text_format import lines, printable

_QUOTE: Final = "put the whole value in quotes"
_QUOTED: Final = "if this is part of a text, put the whole text in quotes; if not, delete it"
_LIST: Final = "write each entry into a line of its own, or the list as [a, b]"
_TOO_EARLY: Final = "delete this, or what closes the document too early"


class _Complaint(NamedTuple):
    """What the parser says, and the text that it read."""

    problem: str
    mark: Any
    """Where it stopped."""
    context: Any
    """Where it had begun what it could not end; None where it had begun nothing."""
    in_brackets: bool
    rows: list[str]
    name: str

    def row(self, mark: Any) -> str:
        """The line of a mark; empty behind the end."""
        return self.rows[mark.line] if mark.line < len(self.rows) else ""

    def location(self, line: int, start: int, end: int) -> Location:
        """A stretch of one line, at least one character long; everything is counted from 0 here."""
        written = [number for number, row in enumerate(self.rows) if row.strip()]
        if line > (last := written[-1] if written else 0):  # the parser stopped behind the end
            line, start, end = last, len(self.rows[last].rstrip()), 0
        return Location(self.name, line + 1, start + 1, line + 1, max(end, start + 1) + 1)

    def found(self, message: str, location: Location, help: str = "", opened: Location | None = None) -> Finding:
        """The finding."""
        language = "JSON" if self.name.endswith(".json") else "YAML"
        related = ((opened, "it opens here"),) if opened and opened[:3] != location[:3] else ()
        return Finding.of("TPU002", f"this is not {language}: {message}", location, help=help, related=related)


def syntax_finding(error: Any, text: str, name: str) -> Finding:
    """One finding for what the parser says; `text` is what it read."""
    problem, mark = str(error.problem or error.context), error.problem_mark or error.context_mark
    said = _Complaint(problem, mark, error.context_mark, "flow" in str(error.context), lines(text), name)
    if mark is None:
        return said.found(problem, Location(name), _QUOTED)
    if text.lstrip().startswith("{") and (comment := _comment(said)):
        return comment
    if (template := said.row(mark).find("{%")) >= 0:
        location = said.location(mark.line, template, template + 2)
        return said.found("a spec is no template", location, "write the text that the template would make")
    if said.row(mark)[mark.column :].startswith("\t"):
        said = said._replace(problem="tab character")
    return next((read for pattern, read in _READERS.items() if re.search(pattern, said.problem)), _table)(said)


def _table(said: _Complaint) -> Finding:
    for pattern, message, hint in _READINGS:
        if complaint := re.search(pattern, said.problem):
            at = said.context if said.context and message in _OF_THE_WHOLE else said.mark
            location = said.location(at.line, at.column, 0)
            rest = said.row(said.mark)[said.mark.column :]
            words = {"char": printable(rest[:1]), "after": printable(rest[1:2])}
            opened = said.location(said.context.line, said.context.column, 0) if said.in_brackets else None
            if rest[:1] == ":" and said.in_brackets:  # what stands where a comma is missing is the colon's key
                before = said.row(said.mark)[: said.mark.column].rstrip()
                location = location._replace(column=max(before.rfind(sign) for sign in "\t ,[{") + 2)
            return said.found(
                message.format(*complaint.groups(), **words), location, hint.format(*complaint.groups()), opened
            )
    return said.found(said.problem, said.location(said.mark.line, said.mark.column, 0), _QUOTED)


_READINGS: Final = (
    (r"tab character", "a tab stands where YAML takes spaces only", "replace the tab by spaces"),
    (r"cannot start any token", "no value starts with {char}", _QUOTE),
    (r"entries are not allowed", "a list cannot begin in the line of its key", _LIST),
    (r"expected '-' indicator", "this stands among the entries of a list and is none", "begin it with a dash"),
    (r"expected ',' or '(.)'", "a comma or the closing {0} is missing before this", "add a comma, or close with {0}"),
    (r"expected node content", "a value is missing before this", "add the value, or delete what stands around it"),
    (r"unknown escape", "no escape begins with {char}{after}", "put the text in single quotes: they know no escapes"),
    (r"Unicode character escape", "this escape stands for no character", "write the character itself"),
    (r"expected alphabetic or numeric", "a name must follow this sign of YAML", _QUOTE),
    (r"expected comment or line break", "a text that begins with > or | begins in the next line", _QUOTE),
    (r"expected <document start>", "the document ends before this", _TOO_EARLY),
)
"""By what the parser says: the message and the edit. `char` and `after` are what stands where it stopped."""


_OF_THE_WHOLE: Final = frozenset(message for _, message, hint in _READINGS[-3:-1] if hint is _QUOTE)
"""These are about the value that had begun, not about the character in it."""


def _comment(said: _Complaint) -> Finding | None:
    """A comment that JSON does not have, and that YAML takes for a word."""
    for number, row in enumerate(said.rows[: said.mark.line]):
        if row.lstrip().startswith(("//", "/*")):
            location = said.location(number, len(row) - len(row.lstrip()), len(row.rstrip()))
            return said.found(
                "no comment starts with //: JSON has none, and YAML's start with #", location, "delete it"
            )
    return None


def _unclosed(said: _Complaint) -> Finding:
    at = said.context or said.mark
    sign = said.row(at)[at.column : at.column + 1]
    return said.found("this quotation is never closed", said.location(at.line, at.column, 0), f"close it with {sign}")


def _colon(said: _Complaint) -> Finding:
    """A colon inside an unquoted value, or a line that is indented deeper than the one it belongs beside."""
    row, line = said.row(said.mark), said.mark.line
    key = re.match(r"\s*(?:- +)*+[^\s:#][^:]*: +", row[: said.mark.column])
    if key is None:
        return _indent(said)
    value = row[key.end() :].rstrip()
    quoted = printable(value).replace("'", "''")
    location = said.location(line, key.end(), key.end() + len(value))
    return said.found("a colon and a space inside a value start another one", location, f"{_QUOTE}: '{quoted}'")


def _no_colon(said: _Complaint) -> Finding:
    """A line that is neither a key with its value nor the rest of a text."""
    at = said.context or said.mark
    text = said.row(at)[at.column :].rstrip()
    key, _, value = text.partition(":") if ":" in text else text.partition(" ")
    location = said.location(at.line, at.column, at.column + len(text))
    fix = printable(f"write {key}: {value.strip()}".rstrip())
    return said.found("a key needs a colon and a space before its value", location, fix)


def _stray(said: _Complaint) -> Finding:
    """Text behind a value that has ended, or a line whose indent belongs to no mapping above it."""
    row, line, column = said.row(said.mark), said.mark.line, said.mark.column
    if not row[:column].strip():
        return _indent(said)
    location = said.location(line, column, len(row.rstrip()))
    return said.found("the value ends before this", location, f"delete this, or {_QUOTE}")


def _indent(said: _Complaint) -> Finding:
    row, line = said.row(said.mark), said.mark.line
    own = _indented(row)
    location = said.location(line, own, own + len(row.strip().partition(":")[0]))
    above = [
        (number, it) for number, it in enumerate(said.rows[:line]) if it.strip() and not it.lstrip().startswith("#")
    ]
    if not above:
        return said.found("this line is indented, and no key stands above it", location, "begin it at the line's start")
    number, other = above[-1]
    message = f"this line is indented by {own}, and the one above it by {_indented(other)}"
    finding = said.found(message, location, f"indent it by {_indented(other)}, if it belongs beside the line above")
    return finding._replace(related=((said.location(number, _indented(other), len(other.rstrip())), "the line above"),))


def _indented(row: str) -> int:
    return len(row) - len(row.lstrip())


_READERS: Final[dict[str, Callable[[_Complaint], Finding]]] = {
    r"values are not allowed": _colon,
    r"expected ':'": _no_colon,
    r"expected key|<block end>": _stray,
    r"unexpected (end of stream|document indicator)": _unclosed,
}
"""What needs more than words: these complaints have several causes, or another place."""
