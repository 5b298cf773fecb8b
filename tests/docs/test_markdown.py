"""Markdown that the repository's host and the site's generator lay out alike."""

import re
from collections.abc import Iterator

import pytest

from spec_factory import ROOT

_FENCE = re.compile(r"(?P<indent> *)```")
_ENTRY = re.compile(r"(?P<indent> *)(- |\d+\. )")
_SITE_ONLY = re.compile(r"!!! |\?\?\? |=== \"|.*\{ ?[:#.][^}]*\}$")
"""Syntax of the site's generator only: admonitions, tabs, and a heading's anchor; the host shows it as text."""


def layout_differences(text: str) -> Iterator[str]:
    """Yield the lines that the site's generator, based on the original Markdown, lays out differently."""
    fenced, above = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence, entry = _FENCE.match(line), _ENTRY.match(line)
        if fence:
            fenced = not fenced
            if len(fence["indent"]) % 4:
                yield f"{number}: a block of code inside a list is indented by 4"
        elif not fenced and entry:
            if len(entry["indent"]) % 4:
                yield f"{number}: a list inside a list is indented by 4"
            if above.strip() and not above.startswith(" ") and not _ENTRY.match(above):
                yield f"{number}: a list begins below an empty line"
        elif not fenced and _SITE_ONLY.match(line):
            yield f"{number}: the host shows this as it is written"
        elif not fenced and line.startswith("|") and above.strip() and not above.startswith("|"):
            yield f"{number}: a table begins below an empty line"
        above = line


def test_a_page_has_one_layout() -> None:
    """Lists, tables and code blocks begin and are indented in a way that both parsers accept."""
    texts = {page: page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")}
    assert [(page, line) for page, text in texts.items() for line in layout_differences(text)] == []


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ("text\n- one\n", "2: a list begins below an empty line"),
        ("- one\n\n  ```sh\n  ls\n  ```\n", "3: a block of code inside a list is indented by 4"),
        ("- one\n  - two\n", "2: a list inside a list is indented by 4"),
        ("text\n| a | b |\n", "2: a table begins below an empty line"),
        ('!!! warning "Mind"\n', "1: the host shows this as it is written"),
        ("## A key { #key }\n", "1: the host shows this as it is written"),
    ],
)
def test_each_difference_is_reported(text: str, difference: str) -> None:
    """Syntax that only one of the two parsers lays out as intended is reported with its line."""
    assert next(layout_differences(text)) == difference


def test_common_syntax_passes() -> None:
    """A list with continuation lines, a nested list, a table, and code that resembles them have no difference."""
    text = (
        "text\n\n- one\n  goes on\n- two\n    - three\n\n| a | "
        "b |\n|---|---|\n| c | d |\n\n```text\n| x\ny\n- z\n```\n"
    )

    assert [*layout_differences(text)] == []
