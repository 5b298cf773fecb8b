"""`python -m tpucfg` and the console script."""

import gc
import os
import sys
from contextlib import suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import Final, NoReturn

_GARBAGE: Final = 200_000
"""Allocations between two searches for cyclic garbage. With Python's own 700 a starting command searches a dozen times
and finds nothing: a tenth of the time of a small command."""

_INTERRUPTED: Final = 130
"""Ctrl-C while the command still starts; `cli.exits` has the same for later."""


def main() -> NoReturn:
    """Runs the command line; the process ends with its exit status."""
    gc.set_threshold(_GARBAGE)
    _open_streams()
    try:
        from tpucfg.cli.app import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = _INTERRUPTED
    _leave(status)


def _leave(status: int) -> NoReturn:
    """Ends the process with all that was printed, and leaves it to the system to free the memory at once.

    Nothing waits for the interpreter's own end: no command leaves a thread, a temporary file or an open file behind.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever would be told has gone, or was told already
            stream.flush()
    os._exit(status)


def _open_streams() -> None:
    """What is printed is UTF-8 on every machine, as the files are; what cannot be is shown as an escape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started the command, who wants to read nothing
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - open until the process ends
        elif isinstance(stream, TextIOWrapper):
            if isinstance(stream.buffer, RawIOBase):  # PYTHONUNBUFFERED: a half-written text would go unnoticed
                stream = TextIOWrapper(BufferedWriter(stream.detach()), line_buffering=True)
                setattr(sys, name, stream)
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    main()
