"""The output of a stack program for a log: bounded, and without commands to the service that shows the log."""

import re
from typing import Final

from tpucfg.redaction import redact
from tpucfg.text_format import format_count, printable

MAX_BYTES: Final = 2**16
"""Limit of what a log shows of a program's output: hundreds of warnings."""
_PREFIX: Final = "  | "
# GitHub's runner reads a command from `##[` anywhere in a line, but from `::` only after leading spaces:
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND_AT_START: Final = re.compile(r"^(\s*)::")


class BoundedOutput:
    """The first bytes that a program printed, and the number of the others."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._omitted = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk, or the part of it that is within the limit."""
        kept = chunk[: MAX_BYTES - len(self._kept)]
        self._kept += kept
        self._omitted += len(chunk) - len(kept)

    def lines(self) -> list[str]:
        """Return the lines for a log, each with a prefix."""
        lines = [f"{_PREFIX}{redact(line)}" for line in log_lines(self._kept.decode("utf-8", "replace"))]
        if self._omitted:
            lines.append(f"{_PREFIX}… {format_count(self._omitted, 'more byte')}")
        return lines


def log_lines(text: str) -> list[str]:
    """Return the lines of a text that a program wrote, none of which a log takes as a command."""
    lines = (printable(line) for line in text.replace("\r", "\n").split("\n"))
    return [_COMMAND_AT_START.sub(r"\1: :", line.replace("##[", "# #[")) for line in lines if line.strip()]
