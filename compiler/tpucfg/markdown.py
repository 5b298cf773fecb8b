"""User text inside GitHub's and GitLab's Markdown: shown to the letter, and never obeyed.

What stands in code is neither Markdown nor a mention nor a reference to an issue, so nearly everything that a user
wrote is put into code; `prose` is for sentences.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from tpucfg.text_format import printable

NOTHING: Final = "\u200b"
"""A space without width: it ends a word for whoever looks for mentions and references, and for nobody else."""

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]|~$]|^[#+=-])")
"""What Markdown could take for markup, in a line or at its start: https://github.github.com/gfm/#backslash-escapes."""
_RUNS: Final = re.compile("`+")
_REFERENCES: Final = (
    re.compile(r"([@#!%&~$])(?=\w)"),
    re.compile(r"(\bGH-)(?=\d)", re.IGNORECASE),
    re.compile(r"(\bwww)(?=\.)", re.IGNORECASE),
    re.compile(r"(:)(?=//)"),
    re.compile(r"(:)(?=[a-z+-][\w+-]*:)"),
)
"""What becomes a mention, a reference, a link or a picture of a face where it stands in prose."""


def prose(text: str) -> str:
    """A sentence that may hold anything: one line that reads as it was written."""
    # Four spaces at the start of a line would make a block of code of it.
    marked = _MARKUP.sub(r"\\\1", _unreferenced(printable(text).strip()))
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", escape(marked, quote=False))


def _unreferenced(text: str) -> str:
    for reference in _REFERENCES:
        text = reference.sub(rf"\1{NOTHING}", text)
    return text


def code(text: str) -> str:
    """A value as inline code, whatever it holds."""
    text = printable(text)
    if not text:
        return "` `"
    mark = "`" * (_longest_run(text) + 1)
    # One space at each end is taken off again: https://github.github.com/gfm/#code-spans
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{mark}{pad}{text}{pad}{mark}"


def html_code(text: str) -> str:
    """A value as code inside a line of HTML, as a `<summary>` is."""
    return f"<code>{escape(printable(text))}</code>"


def html(text: str) -> str:
    """A text inside a line of HTML, where mentions still work and Markdown does not."""
    return escape(_unreferenced(printable(text)))


def fence(text: str, language: str = "") -> str:
    """Lines as a block of code, whose fence is longer than any run of backticks inside; ends with its last line."""
    lines = [printable(line.replace("\t", "  ")) for line in text.replace("\r\n", "\n").split("\n")]
    mark = "`" * max(3, _longest_run(text) + 1)
    return "\n".join([f"{mark}{language}", *lines, mark])


def details(summary: str, body: str) -> str:
    """What is folded away under a line; the summary is HTML already."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """A table of cells that are Markdown already; columns of numbers stand to the right."""
    right = set(numbers)
    rule = ["--:" if at in right else "---" for at in range(len(header))]
    return "\n".join(f"| {' | '.join(map(cell, row))} |" for row in (header, rule, *rows))


def cell(text: str) -> str:
    """Markdown as a table's cell: there a pipe ends the cell even inside code."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", text).replace("\n", " ")


def alert(kind: str, lines: Sequence[str]) -> str:
    """An alert of GitHub's (`NOTE`, `WARNING`, `CAUTION`) with a list; elsewhere a quotation that names the kind."""
    return "\n".join([f"> [!{kind}]", *(f"> - {line}" for line in lines)])


def _longest_run(text: str) -> int:
    return max(map(len, _RUNS.findall(text)), default=0)
