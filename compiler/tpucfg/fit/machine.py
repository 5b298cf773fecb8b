"""The machine that compiles: its kind, its memory, the processes of a compilation, and its containers.

A container runs the same worker in the job's own image, in place of a Python of this machine. The spec's folder and the
worker are mounted to be read, at the same paths; there is no network. The worker's answers come from the container's
stdout, and what the program prints from its stderr.
"""

import os
import platform
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

MIN_MEMORY: Final = 1 << 30
"""The memory that one compilation needs at least: measured were 0.8 to 1.5 GB, for slices of 16 to 256 chips."""
TYPICAL_MEMORY: Final = 3 << 29
"""The memory by which the default number of concurrent compilations is counted."""

_PROC: Final = Path("/proc")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_KIB: Final = 1 << 10
# The fields of /proc/<pid>/stat behind the name: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html.
_SESSION: Final = 3
_RESIDENT_PAGES: Final = 21
_MAX_KILL_ROUNDS: Final = 20
"""Rounds of ending processes that start others while they are ended."""


def machine_problem() -> str:
    """Return the reason why this machine cannot compile for TPUs; empty if it can.

    libtpu, which contains the compiler, has packages for Linux on x86-64 only: https://pypi.org/project/libtpu/#files.
    """
    system, processor = platform.system(), platform.machine()
    if (system, processor) != ("Linux", "x86_64"):
        return f"the TPU compiler runs on Linux on x86-64, and this machine has {system} on {processor}"
    memory = available_memory()
    if memory < MIN_MEMORY:
        return (
            f"one compilation needs at least {MIN_MEMORY / 2**30:g} GiB of memory, and this machine has "
            f"{memory / 2**30:.2f} GiB left"
        )
    return ""


def default_jobs() -> int:
    """Return the number of compilations that the machine has cores and memory for, at least one."""
    return max(1, min(len(os.sched_getaffinity(0)), available_memory() // TYPICAL_MEMORY))


def available_memory() -> int:
    """Return the bytes that new processes can use without swapping, also by the limit of a container."""
    return min(_unused_memory(), *_container_headrooms())


def session_memory(session: int) -> int:
    """Return the resident bytes of all processes of a session; pages that they share are counted for each."""
    pages = 0
    for pid in _pids():
        fields = _stat_fields(pid)
        if len(fields) > _RESIDENT_PAGES and fields[_SESSION] == str(session):
            pages += int(fields[_RESIDENT_PAGES])
    return pages * _PAGE_BYTES


def prefer_for_out_of_memory(pid: int) -> None:
    """Let the kernel end this process first where memory runs out faster than it is measured here.

    https://man7.org/linux/man-pages/man5/proc_pid_oom_score_adj.5.html
    """
    with suppress(OSError):
        (_PROC / str(pid) / "oom_score_adj").write_text("1000", encoding="ascii")


def kill_marked(marker: str) -> None:
    """End every process of the user whose environment contains a variable `NAME=value`, also those that daemonized."""
    for _ in range(_MAX_KILL_ROUNDS):
        pids = list(_marked_pids(marker.encode()))
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return


def _unused_memory() -> int:
    for line in (_PROC / "meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * _KIB
    return MIN_MEMORY  # before Linux 3.14


def _container_headrooms() -> Iterator[int]:
    """Yield the bytes below each limit of the control groups of this process; a huge number if there is none.

    https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
    """
    yield 1 << 62
    with suppress(OSError, ValueError):
        line = (_PROC / "self" / "cgroup").read_text(encoding="ascii").splitlines()[-1]
        group = Path("/sys/fs/cgroup", line.rpartition(":")[2].lstrip("/"))
        for folder in (group, *group.parents[:-3]):
            with suppress(OSError, ValueError):
                yield max(0, _number(folder / "memory.max") - _used(folder))


def _used(folder: Path) -> int:
    """Return the memory of a control group without cached files, which the kernel drops where it needs space."""
    used = _number(folder / "memory.current")
    for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file":
            return used - int(value)
    return used


def _number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))  # the text is `max` without a limit


def _pids() -> Iterator[int]:
    with os.scandir(_PROC) as entries:
        yield from (
            int(entry.name) for entry in entries if entry.name.isascii() and entry.name.isdecimal()
        )


def _stat_fields(pid: int) -> list[str]:
    """Return the fields behind the process's name, which may contain spaces and brackets."""
    with suppress(OSError):
        return (
            (_PROC / str(pid) / "stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()
        )
    return []


def _marked_pids(marker: bytes) -> Iterator[int]:
    for pid in _pids():
        with suppress(OSError):
            if marker in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield pid


# Containers

NOT_STARTED: Final = frozenset((125, 126, 127))
"""Exit statuses of `docker run` whose container, or whose program, never started.

https://docs.docker.com/reference/cli/docker/container/run/#exit-status
"""
_SECONDS: Final = 20
_SPARE_SECONDS: Final = 60
"""Time beyond the limit of a compilation, after which the container ends by itself: its tpucfg was killed."""


def container_command(
    image: str, name: str, folder: Path, worker: Path, env: Mapping[str, str], seconds: float
) -> list[str]:
    """Return the command that runs the worker, a file, in a container of this name."""
    mounts = (f"type=bind,source={path},target={path},readonly" for path in (folder, worker.parent))
    return [
        *("docker", "run", "--rm", "--interactive", "--name", name, "--network", "none"),
        *("--oom-score-adj", "1000", "--workdir", str(folder)),
        *(word for mount in mounts for word in ("--mount", mount)),
        *(word for item in env.items() for word in ("--env", "=".join(item))),
        *("--entrypoint", "python3", image, "-B", str(worker)),
        *("container", str(int(seconds) + _SPARE_SECONDS)),
    ]


def main_process(name: str) -> int | None:
    """Return the id of the container's first process, which leads a session; None if it does not run."""
    text = _docker(("inspect", "--format", "{{.State.Pid}}", name))
    return int(text) if text.isascii() and text.isdecimal() and int(text) else None


def kill_container(name: str) -> None:
    """End a container with all that runs in it; docker then removes it."""
    _docker(("kill", name))


def _docker(words: Sequence[str]) -> str:
    """Return what a docker command prints; empty if it fails or hangs."""
    with suppress(OSError, subprocess.TimeoutExpired):
        result = subprocess.run(
            ["docker", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return result.stdout.strip() if result.returncode == 0 else ""
    return ""
