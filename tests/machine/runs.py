"""Runs of machines: the program, its faults, and the time at which the slice has to be deleted."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from services import Cloud, Request
from vm import Machine

from jobs import job
from tpucfg.targets import cloud_tpu

Act = Callable[[Machine], None]

ENDS: Final = "echo step 1; sleep 3"
FAILS: Final = "echo step 1; sleep 3; exit 3"
TRAINS: Final = "trap 'echo saving; sleep 4; echo saved; exit 143' TERM; echo step 1; while :; do sleep 1; done"
IGNORES: Final = "trap '' TERM; echo step 1; while :; do sleep 1; done"
END: Final = 4 + 60
"""Seconds from the start of the script to the deletion of a slice whose program ends after 3."""
LATE: Final = 16
"""The watchdog looks every 5 seconds, and the machines of other runs take time too."""


STOP: Final = threading.Event()
"""Set when no result is needed any more: all machines end."""
_BOOTS: Final = threading.BoundedSemaphore(3)
"""Machines that boot at once: a boot takes a core for a second, and no run should start late for others."""
BOOT_SECONDS: Final = 2
"""The time in which a script usually starts its program."""


@dataclass(frozen=True)
class Run:
    """A machine, what goes wrong with it, and the time at which it has to delete its slice."""

    program: str
    seconds: int | None
    """max_run_duration."""
    at: float
    """The earliest time of the first call, in seconds since the start-up script was delivered; 0: never."""
    late: float = LATE
    during: Sequence[tuple[float, Act]] = ()
    """Faults by the second; those below 0 are there before the machine boots."""
    cloud: Mapping[str, Any] = field(default_factory=dict)
    trainer: Mapping[str, Any] = field(default_factory=dict)
    target: Any = cloud_tpu
    size: str = "v2-8"
    region: str = "us-central1"
    log: str = "step 1"
    """A text of the log that is saved in the bucket; empty if none can be."""
    journal: str = ""
    """A text that the units print."""

    @property
    def longest(self) -> float:
        """The seconds that it may take, by which the long runs start first."""
        return self.at + self.late + 30 * len(self.cloud.get("deletions", ()))


@dataclass
class Result:
    """The end of a run."""

    calls: list[Request]
    """The calls that delete the slice; `at` counts from the delivery of the script."""
    saved: str
    report: str


def script_of(run: Run) -> str:
    """Return the start-up script of a run's job."""
    trainer = {"command": ["sh", "-c", run.program], **run.trainer}
    if run.seconds:
        trainer["max_run_duration"] = f"{run.seconds}s"
    script: str = run.target.startup_script(
        job(run.target.NAME, run.size, environment={"region": run.region}, trainer=trainer)
    )
    return script


def result_of(name: str, run: Run, folder: Path, tree: Path) -> Result:
    """Boot the machine, let things go wrong, and wait for the end of the slice, or until it is too late."""
    cloud = Cloud(script_of(run), tree, **run.cloud)
    acts = sorted(run.during, key=lambda act: act[0])
    with Machine(name, folder, cloud) as machine:
        for _, act in (act for act in acts if act[0] < 0):
            act(machine)
        with _BOOTS:
            machine.boot()
            started = _delivery(cloud)
            time.sleep(BOOT_SECONDS)
        for second, act in (act for act in acts if act[0] >= 0):
            if STOP.wait(max(0, started + second - time.monotonic())):
                break
            act(machine)
        limit = started + (run.at + run.late + 150 if run.at else 40)
        while (
            not STOP.is_set()
            and not cloud.deleted
            and time.monotonic() < limit
            and (run.at or time.monotonic() < started + 40)
        ):
            time.sleep(0.5)
        time.sleep(1)
        report = machine.report()
        for call in cloud.calls:
            call.at -= started
        return Result(cloud.calls, "".join(cloud.objects.values()), report)


def _delivery(cloud: Cloud) -> float:
    """Wait until the machine has asked for the script, and return that time."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for request in [*cloud.requests]:
            if request.path.endswith("startup-script"):
                return request.at
        time.sleep(0.1)
    raise TimeoutError("the machine has not asked for its script within two minutes")
