"""Exit codes, and the exception that carries one."""

import sys
from collections.abc import Mapping
from typing import Final

from tpucfg.text_format import printable_lines

ERRORS: Final = 1
"""Findings of level error, or a refusal."""
USAGE: Final = 2
"""Wrong use of the command."""
DIFFERENT: Final = 3
"""Differences under --check, --exit-code or --fail-on."""
INTERRUPTED: Final = 130
"""Ctrl-C: 128 and the number of the signal, as shells report it; also SIGTERM and SIGHUP, where they act as Ctrl-C."""
BROKEN_PIPE: Final = 141
"""The reader of the output, such as `head`, has closed the pipe: 128 and the number of the signal."""

MEANINGS: Final[Mapping[int, str]] = {
    0: "done, possibly with warnings",
    ERRORS: "findings of level error, or a refusal",
    USAGE: "wrong use of the command",
    DIFFERENT: "done, and there are differences, where an option asks for this status",
    INTERRUPTED: "interrupted by Ctrl-C; `fit`, `tune` and `submit` also by SIGTERM or SIGHUP",
    BROKEN_PIPE: "the reader of the output closed the pipe",
}
"""Every exit status, for scripts that call a command."""


class CommandExit(Exception):  # noqa: N818 - it also ends commands that found no error
    """Ends a command, whose output has the reason, with an exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def print_error(message: str, help: str = "") -> None:
    """Print a message and its help line on stderr."""
    print(f"tpucfg: {printable_lines(message)}", file=sys.stderr)
    if help:
        print(f"help: {printable_lines(help)}", file=sys.stderr)
