"""How a command ends before its end."""

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
"""Ctrl-C, as a shell says it: 128 and the number of the signal."""
BROKEN_PIPE: Final = 141
"""The reader of the output, `head` say, has seen enough: likewise."""

MEANINGS: Final[Mapping[int, str]] = {
    0: "done; a warning stops nothing",
    ERRORS: "findings of level error, or a refusal",
    USAGE: "wrong use of the command",
    DIFFERENT: "done, and there are differences, where an option asked for this status",
    INTERRUPTED: "interrupted by Ctrl-C",
    BROKEN_PIPE: "the reader of the output went away",
}
"""Every status, for whoever writes a script around a command."""


class CommandExit(Exception):  # noqa: N818 - it ends a command, whatever the reason
    """Ends the command with a status, and a message on stderr where there is one."""

    def __init__(self, status: int, message: str = "", help: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.help = help

    def say(self) -> None:
        """Prints the message."""
        if self.message:
            print(f"tpucfg: {printable_lines(self.message)}", file=sys.stderr)
        if self.help:
            print(f"help: {printable_lines(self.help)}", file=sys.stderr)
