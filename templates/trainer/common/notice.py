"""The notice before a machine goes away: SIGTERM, which the services send some time before they end a program."""

from __future__ import annotations

import signal
from typing import Any

STOPPED = 128 + signal.SIGTERM
"""Exit status after a notice. It is not 0, so that a service that restarts failed programs starts this one again."""


class Notice:
    """Remembers that SIGTERM arrived, instead of ending the program."""

    def __init__(self) -> None:
        self.received = False
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, *_: Any) -> None:
        self.received = True
