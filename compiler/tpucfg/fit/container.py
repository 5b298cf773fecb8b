"""A compilation inside the job's own image: the same worker, started by docker in place of a Python of this machine.

The spec's folder and the worker are mounted to be read, at the same paths; there is no network. The worker's answers
come from the container's stdout, and what the program prints from its stderr.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

NOT_STARTED: Final = frozenset((125, 126, 127))
"""Exit statuses of `docker run` whose container, or whose program, never started.

https://docs.docker.com/reference/cli/docker/container/run/#exit-status
"""
_SECONDS: Final = 20
_SPARE_SECONDS: Final = 60
"""Time beyond the limit of a compilation, after which the container ends by itself: its tpucfg was killed."""


def docker_path() -> str | None:
    """Return the path of docker; None without it."""
    return shutil.which("docker")


def run_command(image: str, name: str, folder: Path, worker: Path, env: Mapping[str, str], seconds: float) -> list[str]:
    """Return the command that runs the worker of a folder in a container of this name."""
    mounts = (f"type=bind,source={path},target={path},readonly" for path in (folder, worker))
    return [
        *("docker", "run", "--rm", "--interactive", "--name", name, "--network", "none"),
        *("--oom-score-adj", "1000", "--workdir", str(folder)),
        *(word for mount in mounts for word in ("--mount", mount)),
        *(word for item in env.items() for word in ("--env", "=".join(item))),
        *("--entrypoint", "python3", image, "-B", str(worker / "in_container.py"), str(int(seconds) + _SPARE_SECONDS)),
    ]


def main_process(name: str) -> int | None:
    """Return the id of the container's first process, which leads a session; None if it does not run."""
    text = _docker(("inspect", "--format", "{{.State.Pid}}", name))
    return int(text) if text.isascii() and text.isdecimal() and int(text) else None


def kill(name: str) -> None:
    """End a container with all that runs in it; docker then removes it."""
    _docker(("kill", name))


def _docker(words: Sequence[str]) -> str:
    """Return what a docker command prints; empty if it fails or hangs."""
    with suppress(OSError, subprocess.TimeoutExpired):
        result = subprocess.run(
            ["docker", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        return result.stdout.strip() if result.returncode == 0 else ""
    return ""
