"""Text that is not YAML: the parser's complaint, said in words, at the place where the mistake was made.

The parser stops where it can go no further, which is often a line below the mistake: an unclosed quotation is noticed at the
end of the file. What is not in the table is passed on in the parser's own words.
"""

import re
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding, Place
from tpucfg.wording import lines, printable

QUOTE: Final = "put the whole value in quotes"


class _Reading(NamedTuple):
    """How one complaint of the parser is to be read."""

    complaint: re.Pattern[str]
    message: str
    help: str
    where: str = "problem"
    """`problem`: where the parser stopped; `context`: where it had begun."""


_READINGS: Final = tuple(
    _Reading(re.compile(complaint), *said)
    for complaint, *said in (
        (r"tab character|'\\t'", "a tab stands where YAML takes spaces only", "replace the tab by spaces"),
        (r"cannot start any token", "no value starts with {char}", QUOTE),
        (
            r"sequence entries are not allowed",
            "a list cannot begin in the line of its key",
            "write each entry into a line of its own, or the list as [a, b]",
        ),
        (r"expected '-' indicator", "this stands among the entries of a list and is none", "begin it with a dash"),
        (r"expected ',' or '([\]}])'", "a comma or the closing {0} is missing before this", "add the comma, or close with {0}"),
        (r"expected node content", "a value is missing before this", "add the value, or delete what stands around it"),
        (r"unexpected (end of stream|document indicator)", "this quotation is never closed", "close it with {char}", "context"),
        (r"unknown escape character", "no escape begins with {char}{next}", "put the text in single quotes: they know no escapes"),
        (r"Unicode character escape", "this escape stands for no character", "write the character itself"),
        (r"expected alphabetic or numeric", "a name must follow this sign of YAML", QUOTE),
        (r"expected comment or line break", "a text that begins with > or | begins in the next line", QUOTE),
        (r"expected <document start>", "the document ends before this", "delete this, or what closes the document too early"),
        (r"directive", "a line that starts with % is a directive of YAML", "delete the line", "context"),
    )
)


def syntax_finding(error: Any, text: str, name: str) -> Finding:
    """One finding for what the parser says; `text` is what it read."""
    problem = str(error.problem or error.context)
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return _found(problem, Place(name))
    source = lines(text)
    if text.lstrip().startswith("{") and (comment := _comment(source[: mark.line], name)):
        return comment
    line = source[mark.line] if mark.line < len(source) else ""
    if "values are not allowed" in problem:
        return _colon(line, source, mark, name)
    if "expected ':'" in problem and context:
        return _no_colon(source[context.line], context, name)
    if "expected key" in problem or "<block end>" in problem:
        return _stray(line, source, mark, name)
    for reading in _READINGS:
        if complaint := reading.complaint.search("tab character" if line[mark.column :].startswith("\t") else problem):
            return _read(reading, complaint, source, context if reading.where == "context" and context else mark, error, name)
    return _found(problem, _at(mark, name))


def _read(
    reading: _Reading, complaint: re.Match[str], source: list[str], at: Any, error: Any, name: str
) -> Finding:
    row = source[at.line] if at.line < len(source) else ""
    said = {"char": printable(row[at.column : at.column + 1]), "next": printable(row[at.column + 1 : at.column + 2])}
    message, help_ = (part.format(*complaint.groups(), **said) for part in (reading.message, reading.help))
    place = _at(at, name)
    if word := re.search(r"[^\s,[{]+\s*$", row[: at.column]) if said["char"] == ":" else None:
        place = place._replace(column=word.start() + 1)  # the colon's key is what stands where a comma is missing
    opened = _at(error.context_mark, name) if "flow" in str(error.context) else place
    return _found(message, place, help_, ((opened, "it opens here"),) if opened[:3] != place[:3] else ())


def _comment(source: list[str], name: str) -> Finding | None:
    """A comment that JSON does not have, and that YAML takes for a word."""
    for number, row in enumerate(source, start=1):
        if row.lstrip().startswith(("//", "/*")):
            start, end = len(row) - len(row.lstrip()) + 1, len(row.rstrip()) + 1
            place = Place(name, number, start, number, end)
            return _found("this comment is none: JSON has none, and YAML's start with #", place, "delete it")
    return None


def _colon(line: str, source: list[str], mark: Any, name: str) -> Finding:
    """A colon inside an unquoted value, or a line that is indented deeper than the one it belongs beside."""
    key = re.match(r"\s*(?:- +)*[^\s:#][^:]*: +", line[: mark.column])
    if key:
        value = line[key.end() :].rstrip()
        place = Place(name, mark.line + 1, key.end() + 1, mark.line + 1, key.end() + len(value) + 1)
        return _found("a colon and a space inside a value start another one", place, f"{QUOTE}: {_quoted(value)}")
    return _indent(line, source, mark, name)


def _quoted(text: str) -> str:
    doubled = printable(text).replace("'", "''")
    return f"'{doubled}'"


def _stray(line: str, source: list[str], mark: Any, name: str) -> Finding:
    """Text behind a value that has ended, or a line whose indent belongs to no mapping above it."""
    if line[: mark.column].strip():
        end = len(line.rstrip())
        place = Place(name, mark.line + 1, mark.column + 1, mark.line + 1, max(end, mark.column + 1) + 1)
        return _found("the value ends before this", place, f"delete this, or {QUOTE}")
    return _indent(line, source, mark, name)


def _indent(line: str, source: list[str], mark: Any, name: str) -> Finding:
    own = len(line) - len(line.lstrip())
    above = [(number, row) for number, row in enumerate(source[: mark.line]) if row.strip() and not row.lstrip().startswith("#")]
    text = line.strip().partition(":")[0]
    place = Place(name, mark.line + 1, own + 1, mark.line + 1, own + len(text) + 1)
    if not above:
        return _found("this line is indented, and no key stands above it", place, "begin it at the line's start")
    number, row = above[-1]
    indent = len(row) - len(row.lstrip())
    message = f"this line is indented by {own}, and the one above it by {indent}: it is neither beside it nor below it"
    other = Place(name, number + 1, indent + 1, number + 1, len(row.rstrip()) + 1)
    return _found(message, place, f"indent it by {indent} spaces, as the line above", ((other, "the line above"),))


def _no_colon(line: str, context: Any, name: str) -> Finding:
    text = line[context.column :].rstrip()
    place = Place(name, context.line + 1, context.column + 1, context.line + 1, context.column + max(len(text), 1) + 1)
    key, colon, value = text.partition(":")
    key, value = (key, value) if colon else (text.partition(" ")[0], text.partition(" ")[2])
    fix = f"write {printable(f'{key}: {value.strip()}'.strip())}"
    return _found("a key needs a colon and a space before its value", place, fix)


def _at(mark: Any, name: str) -> Place:
    return Place(name, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


def _found(message: str, place: Place, help_: str = "", related: tuple[tuple[Place, str], ...] = ()) -> Finding:
    language = "JSON" if place.file.endswith(".json") else "YAML"
    return Finding.of("TPU002", f"this is not {language}: {message}", place, help=help_, related=related)
