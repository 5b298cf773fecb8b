"""The hosts of a simulated slice, their programs, and what goes wrong in a run."""

import math
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from slice_clock import Actor

EPOCH: Final = 1_800_000_000
"""The output of `date +%s` at the start of a run."""


@dataclass
class Trainer:
    """The program of one host: what each start of it does, and how it takes a signal."""

    work: list[tuple[float, int]]
    """For each start in order, the seconds until it exits and its status; the last one repeats."""
    checkpoint: float | None = 0
    """Seconds that it writes a checkpoint after SIGTERM, before it exits with 143; None ignores the signal."""
    peer_delay: float = 20
    """Seconds until it fails with status 1 because the program of another host has failed or died."""


@dataclass
class Event:
    """One thing that goes wrong: `at` is in seconds, or the number of calls for a process that is killed."""

    kind: str
    host: int
    at: float
    signal: int = signal.SIGKILL
    seconds: float = 0


@dataclass
class Scenario:
    """The hosts of a run, what their programs do, and what goes wrong."""

    script: str
    trainers: list[Trainer]
    boots: list[float]
    """The time at which each host boots."""
    events: list[Event] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """HTTP statuses of the first calls that delete the slice; the others succeed. 0: no answer."""
    broken_bucket: bool = False
    refused_uploads: int = 0
    """Logs that the bucket refuses, before it takes one."""
    refused_pull: str = ""
    """The error of docker for each pull; empty if the image exists."""
    hosts_per_slice: int = 0
    """0 if there is only one slice."""
    worker_attribute: str = "agent-worker-number"
    """The attribute of the metadata with the number of a host; `tpu-env` for a line of that one."""
    service_limit: float = 0
    """Seconds from the start of a VM until the service deletes it; 0 if it has no limit."""
    limit: float = 3000
    title: str = ""


@dataclass
class Call:
    """A call that deletes the slice."""

    at: float
    host: int
    status: int
    problems: list[str]


@dataclass
class Container:
    """The container of a host."""

    status: str = "running"
    code: int = 0
    starts: int = 0
    epoch: int = 0
    """Changes with each start and exit, so that planned events of an earlier start do nothing."""
    checkpointing: bool = False
    ended_at: float = 0


class Host:
    """A machine with its disk (lib), its tmpfs (run), and at most one container."""

    def __init__(self, number: int, folder: Path, trainer: Trainer) -> None:
        self.number, self.folder, self.trainer = number, folder, trainer
        self.up = self.stopping = self.limited = self.docker_dead = False
        self.lost_at = math.inf
        self.masked: set[str] = set()
        """The units of systemd that it does not start any more."""
        self.booted_at = 0.0
        self.container: Container | None = None
        self.actors: dict[str, Actor] = {}
        self.calls: dict[str, int] = {"script": 0, "watchdog": 0}
        self.script_ended_at = 0.0

    @property
    def lost(self) -> bool:
        """True if it is gone for good."""
        return self.lost_at < math.inf

    @property
    def deadline(self) -> float:
        """The deadline in the host's own file, in seconds of the run; infinity if the script died before it."""
        file = self.folder / "lib/deadline"
        return float(file.read_text()) - EPOCH if file.exists() else math.inf

    @property
    def over_at(self) -> float:
        """The time at which its program has ended, or could not be started."""
        if self.container is None or self.container.status == "created":
            return self.script_ended_at
        return max(self.container.ended_at, self.booted_at)

    @property
    def ended(self) -> tuple[float, str] | None:
        """The time at which the watchdog noted the end of the program, and its status."""
        file = self.folder / "lib/ended"
        if not file.exists():
            return None
        at, status = file.read_text().split()
        return float(at) - EPOCH, status
