"""User text in GitHub's and GitLab's Markdown, shown literally and never interpreted.

Inside code, a text is neither Markdown nor a mention nor a reference to an issue, so most user text is written as code.
`prose` is for sentences.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from tpucfg.text_format import printable

ZERO_WIDTH_SPACE: Final = "\u200b"
"""An invisible separator, which prevents services from recognizing a mention or a reference."""

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]|~$]|^[#+=-])")
"""Characters of Markdown syntax, in a line or at its start: https://github.github.com/gfm/#backslash-escapes."""
_BACKTICKS: Final = re.compile("`+")
_REFERENCES: Final = (
    re.compile(r"([@#!%&~$])(?=\w)"),
    re.compile(r"(\bGH-)(?=[0-9])", re.IGNORECASE),
    re.compile(r"(\bwww)(?=\.)", re.IGNORECASE),
    re.compile(r"(:)(?=//)"),
    re.compile(r"(:)(?=[a-z+-][\w+-]*:)"),
)
"""The starts of mentions, references, links and emoji in prose."""


def prose(text: str) -> str:
    """Return a sentence of any content as one line of Markdown that reads as it was written."""
    # Stripped because four spaces at the start of a line would make it a code block.
    marked = _MARKUP.sub(r"\\\1", _without_references(printable(text).strip()))
    return re.sub(r"^([0-9]+)([.)])", r"\1\\\2", escape(marked, quote=False))


def _without_references(text: str) -> str:
    for reference in _REFERENCES:
        text = reference.sub(rf"\1{ZERO_WIDTH_SPACE}", text)
    return text


def code(text: str) -> str:
    """Return a value of any content as inline code."""
    text = printable(text)
    if not text:
        return "` `"
    backticks = "`" * (_longest_run(text) + 1)
    # A renderer removes one space at each end: https://github.github.com/gfm/#code-spans
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{backticks}{pad}{text}{pad}{backticks}"


def html_code(text: str) -> str:
    """Return a value as code inside a line of HTML, such as a `<summary>`."""
    return f"<code>{escape(printable(text))}</code>"


def html(text: str) -> str:
    """Return a text inside a line of HTML, where mentions still work and Markdown does not."""
    return escape(_without_references(printable(text)))


def fence(text: str, language: str = "") -> str:
    """Return a text as a code block whose fence is longer than any run of backticks inside."""
    lines = [printable(line.replace("\t", "  ")) for line in text.replace("\r\n", "\n").split("\n")]
    backticks = "`" * max(3, _longest_run(text) + 1)
    return "\n".join([f"{backticks}{language}", *lines, backticks])


def items(lines: Sequence[str], limit: int) -> str:
    """Return a list, of which the items after the limit are only counted."""
    more = [f"… and {len(lines) - limit:,} more"] if len(lines) > limit else []
    return "\n".join(f"- {line}" for line in (*lines[:limit], *more))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Return a table of cells that are already Markdown; the columns in `numbers` are aligned right."""
    right = set(numbers)
    rule = ["--:" if column in right else "---" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(map(cell, row))} |" for row in (header, rule, *rows))


def cell(text: str) -> str:
    """Return Markdown as a table cell, which a pipe would end even inside code."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", text).replace("\n", " ")


def alert(lines: Sequence[str]) -> str:
    """Return a GitHub alert, a caution, with a list; elsewhere, it is shown as a quotation."""
    return "\n".join(["> [!CAUTION]", *(f"> - {line}" for line in lines)])


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
