"""`python -m tpucfg` and the console script: prepare the streams, run the command line, and end the process."""

import gc
import os
import sys
from contextlib import suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import Final, NoReturn, TextIO

_GC_THRESHOLD: Final = 200_000
"""Allocations between two garbage collections. With Python's default of 700, a dozen collections run while a command
starts: they free nothing and take a tenth of a small command's time."""
_EXIT_INTERRUPTED: Final = 130
"""The exit status of Ctrl-C before `cli.exit_codes`, which defines it for all commands, is imported."""


def main() -> NoReturn:
    """Run the command line, and end the process with its exit status."""
    gc.set_threshold(_GC_THRESHOLD)
    _configure_streams()
    try:
        from tpucfg.cli.app import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = _EXIT_INTERRUPTED
    _exit(status)


def _exit(status: int) -> NoReturn:
    """Flush the output and end the process without tearing the interpreter down, which would only take time.

    No command leaves a thread, a temporary file or an open file for the interpreter to clean up.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(
            OSError, ValueError
        ):  # the reader closed the pipe, or `run` has reported the error
            stream.flush()
    os._exit(status)


def _configure_streams() -> None:
    """Make stdout and stderr UTF-8 on every machine, as all files are; unencodable characters become escapes."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _closed_stream(descriptor))
        elif isinstance(stream, TextIOWrapper):
            # PYTHONUNBUFFERED leaves out the buffer, and without it a write that stops halfway raises no error.
            if isinstance(stream.buffer, RawIOBase):
                stream = TextIOWrapper(BufferedWriter(stream.detach()), line_buffering=True)
                setattr(sys, name, stream)
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _closed_stream(descriptor: int) -> TextIO:
    """Return a stream for one that the parent process has closed: stdout refuses every write, stderr discards it.

    Results must not be lost with a status of success; for messages, there is no place left. The descriptor is occupied
    as well, because the next file that is opened would get it, and with it the output.
    """
    null = os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)  # noqa: PLR2004 - stderr
    os.dup2(null, descriptor)
    return open(descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    main()
