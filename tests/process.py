"""Run tpucfg, in this process or in one of its own."""

import fcntl
import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess, Popen
from tempfile import TemporaryFile
from typing import Any, Final, TextIO
from unittest.mock import patch

from spec_factory import ROOT
from tpucfg.cli.app import run

COMMAND: Final = (sys.executable, "-m", "tpucfg")
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "COLUMNS": "80"}
Run = Callable[..., CompletedProcess[str]]


def run_here(
    folder: Path, *arguments: str, env: Mapping[str, str] = ENVIRONMENT
) -> CompletedProcess[str]:
    """Run a command in this process, and return what a process of its own would return.

    The start of a process takes longer than most commands. What depends on it (streams, signals, imports) is tested in
    real ones: e2e/test_process.py, e2e/test_writing.py, test_imports.py.
    """
    with (
        patch.dict(os.environ, env, clear=True),
        chdir(folder),
        _captured(1) as out,
        _captured(2) as err,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = run(arguments)
        return CompletedProcess(arguments, status, _text(out), _text(err))


@contextmanager
def _captured(descriptor: int) -> Iterator[TextIO]:
    """Let a file take the place of an output, also for the programs that the block starts."""
    kept = os.dup(descriptor)
    with TemporaryFile("w+", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.reconfigure(line_buffering=True)
        os.dup2(file.fileno(), descriptor)
        try:
            yield file
        finally:
            os.dup2(kept, descriptor)
            os.close(kept)


def _text(file: TextIO) -> str:
    file.flush()
    file.seek(0)
    return file.read()


@contextmanager
def default_signals() -> Iterator[None]:
    """Let the commands that the block starts be ended by Ctrl-C, SIGTERM and SIGHUP.

    They would inherit that one is ignored, as Ctrl-C is in a background process of a shell, and SIGHUP under nohup.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def without_root() -> Iterator[None]:
    """Drop the rights of root, which may write everywhere."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


def wait_for_reader(process: Popen[Any], pipe: int) -> None:
    """Wait until a process has read all of a pipe, and waits for more.

    Python does not notice a signal that arrives between two reads of one call before the second one has returned.
    """
    while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))) or _state(process) != "S":
        assert process.poll() is None
        time.sleep(0.01)


def _state(process: Popen[Any]) -> str:
    return (
        Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    )
