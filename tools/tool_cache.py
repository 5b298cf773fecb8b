"""The folder in which built tools are kept, the one way in which Go builds them, and a build's lock and progress.

Messages go to stderr.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

CACHE_VARIABLE = "TPUCFG_TOOLS_CACHE"
PROGRESS_SECONDS = 10.0
GO_BUILD: Final = ("go", "build", "-mod=readonly", "-trimpath", "-gcflags=all=-l -dwarf=false")
"""Without inlining and data for debuggers, compilation takes six tenths of the CPU time.

All builds have these flags and no C, as Go keeps a compiled package for each set of flags.
"""


def cache_folder() -> Path:
    """Return the folder, which may not exist; TPUCFG_TOOLS_CACHE is one shared by checkouts."""
    return Path(
        os.environ.get(CACHE_VARIABLE)
        or Path(__file__).resolve().parent.parent / ".cache" / "tools"
    ).absolute()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a build; a second build waits for the first."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"another build is running; waiting for it (lock: {path})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go_build(folder: Path, log_file: Path, arguments: Sequence[str]) -> bool:
    """Build packages in the folder of a module, and return True if that fails."""
    with log_file.open("w") as output:
        return _run_with_progress([*GO_BUILD, "-v", *arguments], folder, output, log_file)


def _run_with_progress(command: list[str], folder: Path, output: TextIO, file: Path) -> bool:
    """Run a build in a folder, and print how many lines its log has so far; return True if it fails."""
    start, environment = time.monotonic(), {**os.environ, "CGO_ENABLED": "0"}
    with subprocess.Popen(
        command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=environment
    ) as process:
        while True:
            try:
                return process.wait(timeout=PROGRESS_SECONDS) != 0
            except subprocess.TimeoutExpired:
                lines = file.read_text().count("\n")
                log(f"  {time.monotonic() - start:4.0f} s, {lines} packages downloaded or compiled")


def log(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)
