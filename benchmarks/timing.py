"""Time and memory of whole processes, from start to end."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Final, NamedTuple

_PYTHON_VARIABLES: Final = "PYTHON"
"""Prefix of variables such as PYTHONDONTWRITEBYTECODE, which disables the cache of compiled modules."""


class Cost(NamedTuple):
    """Cost of one run of a command."""

    seconds: float
    """Wall time."""
    cpu_seconds: float
    """User and system time on all cores."""
    peak_bytes: int
    """Peak resident memory; at least that of this process, which Linux includes in its children's peak."""


class CommandError(Exception):
    """A measured command failed, so its time is meaningless."""


def run(command: Sequence[str], workdir: Path) -> Cost:
    """Run a command and discard its output.

    Raises:
        CommandError: The command failed.
    """
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(_PYTHON_VARIABLES)
    }
    discarded = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    with chdir(workdir):
        start = time.perf_counter()
        process = os.posix_spawn(command[0], list(command), environment, file_actions=discarded)
        _, status, usage = os.wait4(process, 0)
        seconds = time.perf_counter() - start
    if status:
        raise CommandError(f"status {os.waitstatus_to_exitcode(status)}: {' '.join(command[:8])}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def fastest(commands: Mapping[str, Sequence[str]], workdir: Path, rounds: int) -> dict[str, Cost]:
    """Return the fastest of `rounds` runs of each command.

    The commands run in turns, so that temporary load of the machine affects all of them; the fastest run is the least
    affected one. An additional first round fills the caches of files and bytecode.
    """
    for command in commands.values():
        run(command, workdir)
    costs_by_name: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            costs_by_name[name].append(run(command, workdir))
    return {name: min(costs) for name, costs in costs_by_name.items()}
