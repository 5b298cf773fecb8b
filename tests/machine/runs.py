"""Runs of machines: the program, its faults, and the time at which the slice has to be deleted."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from services import Cloud, Request
from vm import Machine

from jobs import compiled
from tpucfg.render.pipeline import render_configs

Act = Callable[[Machine], None]

ENDS: Final = "echo step 1; sleep 3"
FAILS: Final = "echo step 1; sleep 3; exit 3"
TRAINS: Final = (
    "trap 'echo saving; sleep 4; echo saved; exit 143' TERM; echo step 1; while :; do sleep 1; done"
)
IGNORES: Final = "trap '' TERM; echo step 1; while :; do sleep 1; done"
MINUTE: Final = 30
"""The seconds that take the place of the minute between the program's end and the deletion of its slice."""
END: Final = 4 + MINUTE
"""Seconds from the start of the script to the deletion of a slice whose program ends after 3."""
LATE: Final = 24
"""The watchdog looks every 5 seconds, and the machines of other runs take time too."""


STOP: Final = threading.Event()
"""Set when no result is needed any more: all machines end."""
AT_ONCE: Final = 32
"""Machines that run at once. They mostly sleep, but each has three of the 128 inotify instances of Linux's default."""
_BOOTS: Final = threading.BoundedSemaphore(3)
"""Slices that boot at once: a boot takes a core for a second, and no run should start late for others."""
_COMPILES: Final = threading.Lock()
"""The compiler has one thread: two would load the catalog at once, and change it twice."""
BOOT_SECONDS: Final = 2
"""The time in which a script usually starts its program."""


def by_worker(*programs: str) -> str:
    """Return a program that is another one on each host; the last one is that of all further hosts."""
    cases = "".join(f"*-{worker}) {program} ;; " for worker, program in enumerate(programs[:-1]))
    return f"case $(hostname) in {cases}*) {programs[-1]} ;; esac"


class _Slots:
    """The machines that may still boot; a slice takes all that it needs, or waits."""

    def __init__(self, free: int) -> None:
        self.free, self.changed = free, threading.Condition()

    @contextmanager
    def take(self, count: int) -> Iterator[None]:
        with self.changed:
            self.changed.wait_for(lambda: self.free >= count)
            self.free -= count
        try:
            yield
        finally:
            with self.changed:
                self.free += count
                self.changed.notify_all()


_SLOTS: Final = _Slots(AT_ONCE)


@dataclass(frozen=True)
class Run:
    """The machines of a slice, what goes wrong with them, and the time at which the slice has to be deleted."""

    program: str
    seconds: int | None
    """max_run_duration."""
    at: float
    """The earliest time of the first call, in seconds since the start-up script was delivered; 0: never."""
    late: float = LATE
    during: Sequence[tuple[float, Act]] = ()
    """Faults by the second, on each machine; -1 is before it boots, and 0 as soon as it has the script."""
    cloud: Mapping[str, Any] = field(default_factory=dict)
    trainer: Mapping[str, Any] = field(default_factory=dict)
    target: str = "cloud-tpu"
    size: str = "v2-8"
    region: str = "us-central1"
    workers: Sequence[int] = (0,)
    """The hosts that boot, by their number in the slice."""
    by: Sequence[int] | None = None
    """The hosts that may call first; any if None."""
    is_ext4: bool = False
    """True if the disk can fail like a file system on a device, by Machine.fail_disk."""
    log: str = "step 1"
    """A text of the logs that are saved in the bucket; empty if none can be."""
    logs: int = 1
    """The number of logs in the bucket that have it."""
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
    """The calls that delete the slice; `at` counts from the delivery of the first script."""
    boot_seconds: float
    """The seconds from the start of the first machine to its script, which a deadline of Compute Engine includes."""
    saved: list[str]
    """The logs in the bucket."""
    report: str


def script_of(run: Run) -> str:
    """Return the start-up script in the rendered config of a run's job, with a shorter minute."""
    trainer = {"command": ["sh", "-c", run.program], **run.trainer}
    if run.seconds:
        trainer["max_run_duration"] = f"{run.seconds}s"
    with _COMPILES:
        (config,) = render_configs(
            compiled(run.target, run.size, environment={"region": run.region}, trainer=trainer)
        )
    script = _script_in([*yaml.safe_load_all(config.text)])
    minute = "now >= ${ended#* } + "
    assert run.seconds is None or script.count(f"{minute}60)") == 1
    return script.replace(f"{minute}60)", f"{minute}{MINUTE})")


def _script_in(value: Any) -> str:
    """Return the value of `startup-script`, which the services have in different places."""
    children = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    if isinstance(value, dict) and value.get("key") == "startup-script":
        return str(value["value"])
    if isinstance(value, dict) and "startup-script" in value:
        return str(value["startup-script"])
    return next(filter(None, map(_script_in, children)), "")


def result_of(name: str, run: Run, folder: Path, tree: Path) -> Result:
    """Boot the machines, let things go wrong, and wait for the end of the slice, or until it is too late."""
    cloud = Cloud(script_of(run), tree, **run.cloud)
    with ExitStack() as stack:
        stack.enter_context(_SLOTS.take(len(run.workers)))
        machines = [
            stack.enter_context(
                Machine(name, folder / str(worker), cloud, worker, is_ext4=run.is_ext4)
            )
            for worker in run.workers
        ]
        started = _boot(run, machines)
        for second, act in sorted(
            (act for act in run.during if act[0] > 0), key=lambda act: act[0]
        ):
            if STOP.wait(max(0, started + second - time.monotonic())):
                break
            for machine in machines:
                act(machine)
        limit = started + (run.at + run.late + 150 if run.at else 40)
        while not STOP.is_set() and not cloud.deleted and time.monotonic() < limit:
            time.sleep(0.5)
        time.sleep(1)
        report = "\n".join(machine.report() for machine in machines)
        for call in cloud.calls:
            call.at -= started
        return Result(
            cloud.calls, started - machines[0].first_boot, [*cloud.objects.values()], report
        )


def _boot(run: Run, machines: Sequence[Machine]) -> float:
    """Boot the machines, and return the time at which the first of them had its script."""
    before, at_once = ([act for at, act in run.during if at == second] for second in (-1, 0))
    with _BOOTS:
        for machine in machines:
            for act in before:
                act(machine)
            machine.boot()
        started = min(map(_delivery, machines))
        for machine in machines:
            for act in at_once:
                act(machine)
        time.sleep(BOOT_SECONDS)
    return started


def _delivery(machine: Machine) -> float:
    """Wait until the machine has asked for the script, and return that time."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for request in [*machine.cloud.requests]:
            if request.worker == machine.worker and request.path.endswith("startup-script"):
                return request.at
        time.sleep(0.1)
    raise TimeoutError(f"{machine.name} has not asked for its script within two minutes")
