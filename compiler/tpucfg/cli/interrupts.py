"""The signals that end a command, raised only where it can stop."""

import signal
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A block in which Ctrl-C, SIGTERM and SIGHUP only leave a note, which `check` raises.

    A signal that raises an exception wherever it arrives can break the `finally` that cleans up after an earlier one,
    and no order of statements prevents that: Ctrl-C is often pressed twice, and a terminal that closes sends more than
    one signal. https://docs.python.org/3/library/signal.html#handlers-and-exceptions

    A signal that the caller ignores, as nohup does with SIGHUP, stays ignored.
    """

    def __init__(self) -> None:
        self._has_arrived = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has arrived."""
        if self._has_arrived:
            raise KeyboardInterrupt

    def _note(self, *_: Any) -> None:
        self._has_arrived = True
