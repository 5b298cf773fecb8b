"""Quiet exit of the program when Pulumi's Python host interrupts it.

After an API error, the engine stops the update, and the host sends the program a SIGINT while it waits for the engine.
This is how every failed `pulumi up` ends. The SDK does not catch the KeyboardInterrupt, and Python would print its
traceback above the explanation of the error.
"""

import sys
from pathlib import Path
from types import TracebackType
from typing import Final

HOST: Final = "pulumi-language-python-exec"
"""The script in which Pulumi's Python host runs a program."""


def hide_interrupt_traceback() -> None:
    """Print no traceback for a KeyboardInterrupt; the exit status stays that of an interrupted process.

    Outside Pulumi's Python host (under mocks, in the Automation API), the process belongs to another program, whose
    `sys.excepthook` is not changed.
    """
    # Not sys.argv, which the host replaces by the arguments of the program.
    if any(Path(argument).name == HOST for argument in sys.orig_argv):
        sys.excepthook = _print_unless_interrupted


def _print_unless_interrupted(
    type_: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if not issubclass(type_, KeyboardInterrupt):
        sys.__excepthook__(type_, error, traceback)
