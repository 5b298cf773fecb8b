"""Ends of a command: its exit codes, the exception that carries one, and the signals."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

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


# The signals that end a command: Ctrl-C, SIGTERM and SIGHUP. One that the caller ignores, as nohup does with SIGHUP,
# stays ignored.


_TERMINATIONS: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def terminations_as_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP, by default the end of the process, raise KeyboardInterrupt as Ctrl-C does.

    Only the first signal of a block does: a terminal that closes sends more than one SIGHUP, and a CI job that is
    canceled first Ctrl-C and then SIGTERM, which would end what the block does after the first one. Ctrl-C always does.
    """
    numbers: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        numbers.append(number)
        if len(numbers) == 1 or number == signal.SIGINT:
            raise KeyboardInterrupt

    with _handling((signal.SIGINT, *_TERMINATIONS), interrupt):
        yield


@contextmanager
def delayed_interrupts() -> Iterator[Callable[[], None]]:
    """Delay the signals until the block calls the function that it gets, which raises KeyboardInterrupt after one.

    One that arrives after the last call has no effect: the block was about to be complete.

    A signal that raises an exception wherever it arrives can break the `finally` that cleans up after an earlier one,
    and no order of statements prevents that: Ctrl-C is often pressed twice, and a terminal that closes sends more than
    one signal. https://docs.python.org/3/library/signal.html#handlers-and-exceptions
    """
    numbers: list[int] = []

    def check() -> None:
        if numbers:
            raise KeyboardInterrupt

    with _handling((signal.SIGINT, *_TERMINATIONS), lambda number, _: numbers.append(number)):
        yield check


@contextmanager
def _handling(numbers: Sequence[int], handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle signals in a block."""
    handled = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in handled}
    try:
        yield
    finally:
        for number, earlier in previous.items():
            signal.signal(number, earlier)
