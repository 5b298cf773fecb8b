"""Start the programs of a cluster on loopback addresses, and wait until they answer."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

START_SECONDS: Final = 180.0
"""A program needs about five seconds, and much longer where many others run."""


def free_ports(count: int) -> list[int]:
    """Return ports that are free, and different from each other."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@contextmanager
def running(
    command: Sequence[str], log: Path, **environment: str
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program whose output goes into a file, and end it."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **environment}
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(is_ready: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait for a program; if it ends or takes too long, fail with the end of its log."""
    deadline = time.monotonic() + START_SECONDS
    while not is_ready():
        in_time = process.poll() is None and time.monotonic() < deadline
        assert in_time, (
            f"not ready; exit status {process.poll()}; {log}:\n{log.read_text()[-2000:]}"
        )
        time.sleep(0.2)


def is_listening(port: int) -> bool:
    """Return True if something accepts connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
