"""Two readers of Markdown show the documents, the repository's host and the site's, and must lay them out alike."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spec_factory import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
_FENCE = re.compile(r"(?P<indent> *)```")
_ENTRY = re.compile(r"(?P<indent> *)(- |\d+\. )")
_OWN = re.compile(r"!!! |\?\?\? |=== \"|.*\{ ?[:#.][^}]*\}$")
"""What the site's reader alone knows: boxes, tabs, and a heading's own anchor. The host shows the signs."""


def laid_out_otherwise(text: str) -> Iterator[str]:
    """What the site's reader, which follows the first Markdown, takes for something else than the host's."""
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
        elif not fenced and _OWN.match(line):
            yield f"{number}: the host shows this as it is written"
        elif not fenced and line.startswith("|") and above.strip() and not above.startswith("|"):
            yield f"{number}: a table begins below an empty line"
        above = line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_both_readers_see_the_same(page: Path) -> None:
    """Lists, tables and blocks of code begin and are indented as both understand it."""
    assert [*laid_out_otherwise(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text\n- one\n", "2: a list begins below an empty line"),
        ("- one\n\n  ```sh\n  ls\n  ```\n", "3: a block of code inside a list is indented by 4"),
        ("- one\n  - two\n", "2: a list inside a list is indented by 4"),
        ("text\n| a | b |\n", "2: a table begins below an empty line"),
        ('!!! warning "Mind"\n', "1: the host shows this as it is written"),
        ("## A key { #key }\n", "1: the host shows this as it is written"),
    ],
)
def test_each_of_them_is_said(text: str, said: str) -> None:
    """What only one of the two would lay out as meant is named with its line."""
    assert next(laid_out_otherwise(text)) == said


def test_what_both_understand_passes() -> None:
    """A list whose entries go on below, a nested one, a table, and code that looks like either."""
    text = (
        "text\n\n- one\n  goes on\n- two\n    - three\n\n| a | b |\n|---|---|\n| c | d |\n\n```text\n| x\ny\n- z\n```\n"
    )

    assert [*laid_out_otherwise(text)] == []
