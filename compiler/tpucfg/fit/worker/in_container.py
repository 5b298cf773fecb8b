"""Run compile_step.py as a child of a container's first process.

python -B in_container.py SECONDS

The answers leave by stdout, and what the program prints by stderr. The container ends after these seconds even if the
tpucfg that started it is gone: the end of its first process ends all of it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_ANSWERS: Final = 3
_SIGNALLED: Final = 128
"""Added to the number of a signal, as shells do."""


def main() -> None:
    """Start the compilation, and exit with its status."""
    signal.signal(signal.SIGALRM, _end)
    signal.alarm(int(sys.argv[1]))
    child = os.fork()
    if not child:
        signal.alarm(0)
        os.dup2(1, _ANSWERS)
        os.dup2(2, 1)
        script = str(Path(__file__).with_name("compile_step.py"))
        os.execv(sys.executable, [sys.executable, "-B", script, str(_ANSWERS)])  # noqa: S606 - no shell is wanted
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(status if status >= 0 else _SIGNALLED - status)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(_SIGNALLED + signal.SIGALRM)


if __name__ == "__main__":
    main()
