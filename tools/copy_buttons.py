"""Text for the copy buttons of the site: of a terminal session, only the commands.

A block with `$ command` and its output would be copied with both, which a shell cannot run. The theme copies the
`data-copy` attribute of a block instead, if it has one.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(r'<div class="highlight">(?P<code><pre>.*?</pre>)', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")


def add_commands(site: Path) -> None:
    """Add `data-copy` to the terminal sessions in every page of a built site."""
    for page in site.rglob("*.html"):
        page.write_text(
            _BLOCK.sub(_with_commands, page.read_text(encoding="utf-8")), encoding="utf-8"
        )


def _with_commands(block: re.Match[str]) -> str:
    commands = "\n".join(_commands(unescape(_TAG.sub("", block["code"]))))
    return (
        f'<div class="highlight" data-copy="{escape(commands)}">{block["code"]}'
        if commands
        else block[0]
    )


def _commands(text: str) -> Iterator[str]:
    """Yield the lines after a `$ `, and the lines directly below that continue them after a `> `."""
    in_command = False
    for line in text.splitlines():
        in_command = line.startswith("$ ") or (in_command and line.startswith("> "))
        if in_command:
            yield line[2:]
