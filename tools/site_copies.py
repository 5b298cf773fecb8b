"""What the copy button of a page's block gives: of a session in a terminal, the commands alone.

A block that shows `$ command` and what it prints would be copied with both, and a shell can run neither. The theme
copies what a block's `data-copy` says, where it has one.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(r'<div class="highlight">(?P<code><pre>.*?</pre>)', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")


def mark(site: Path) -> None:
    """Say it in every page of a site that is built."""
    for page in site.rglob("*.html"):
        page.write_text(_BLOCK.sub(_marked, page.read_text(encoding="utf-8")), encoding="utf-8")


def _marked(block: re.Match[str]) -> str:
    commands = "\n".join(_commands(unescape(_TAG.sub("", block["code"]))))
    return f'<div class="highlight" data-copy="{escape(commands)}">{block["code"]}' if commands else block[0]


def _commands(text: str) -> Iterator[str]:
    """The lines behind a `$ `, and those that a `> ` right below continues."""
    goes_on = False
    for line in text.splitlines():
        goes_on = line.startswith("$ ") or (goes_on and line.startswith("> "))
        if goes_on:
            yield line[2:]
