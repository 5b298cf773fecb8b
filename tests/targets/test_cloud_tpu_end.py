"""The end of a Cloud TPU slice: the real start-up script runs on simulated hosts while things go wrong."""

import random
import signal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jobs import job
from tpu_hosts import Event, Host, Scenario, Trainer, World
from tpucfg.targets import cloud_tpu

DURATION = 240
"""max_run_duration in seconds; the program receives SIGTERM 48 seconds before, and SIGKILL 24 seconds before."""
STOP = 48
GRACE = 60
SLACK = 15
"""A minute is counted from what the watchdog sees: it looks every 5 seconds, and is back 5 seconds after a kill."""
RUNS = 200
BATCHES = 20
FAULTS = (
    *("ends", "fails", "restarts", "slow", "deadline", "deaf", "bucket"),
    *("term", "term-all", "kill", "script", "watchdog", "watchdog-call", "all-watchdogs", "reboot", "reset", "lost"),
)
ANSWERS: tuple[list[int], ...] = ([], [], [403], [403, 403, 503], [404], [503, 0, 403], [500, 429, 409])


@cache
def script_of(hosts: int, restarts: int | None, slices: int = 1) -> str:
    """Return the start-up script of a job on this number of hosts."""
    trainer = {"image": "python:3.12", "max_run_duration": f"{DURATION}s", "restarts": restarts}
    planned_job = job("cloud-tpu", "v4-16", environment={"region": "us-central2"}, trainer=trainer)
    slice_ = planned_job.slice._replace(hosts=hosts, slices=slices)
    return cloud_tpu.startup_script(planned_job._replace(rung=planned_job.rung._replace(slice=slice_)))


def scenario(seed: int) -> tuple[str, Scenario]:
    """Return the run of a seed: its fault, its hosts and programs."""
    dice = random.Random(seed)  # noqa: S311 - not for secrets
    fault, hosts = FAULTS[seed % len(FAULTS)], dice.randint(1, 4)
    restarts = 2 if fault == "restarts" else dice.choice([None, None, 0, 2])
    work = dice.randint(30, 110)
    checkpoint = dice.randint(0, 50)
    trainers = [
        Trainer([(work, 0)], checkpoint=max(0, checkpoint - dice.randint(0, 20)), peer_delay=dice.randint(1, 40))
        for _ in range(hosts)
    ]
    boots = [dice.uniform(0, 20) for _ in range(hosts)]
    victim, at = dice.randrange(hosts), dice.uniform(21, work)
    number = dice.choice([signal.SIGTERM, signal.SIGKILL])
    run = Scenario(script_of(hosts, restarts), trainers, boots, answers=dice.choice(ANSWERS))
    match fault:
        case "fails":
            trainers[victim].work = [(dice.uniform(1, work), dice.choice([1, 137, 139]))]
        case "restarts":
            trainers[victim].work = [(dice.uniform(1, 20), 1), (dice.uniform(1, 20), 1), (work, dice.choice([0, 1]))]
        case "slow":  # every program ends at another time, some after the deadline
            for trainer in trainers:
                trainer.work = [(dice.uniform(10, 300), dice.choice([0, 0, 1]))]
        case "deadline" | "deaf":
            for trainer in trainers:
                trainer.work, trainer.checkpoint = [(9999, 0)], None if fault == "deaf" else dice.uniform(0, 40)
        case "bucket":
            run.broken_bucket = True
        case "term" | "kill":
            run.events = [Event("trainer", victim, at, signal.SIGTERM if fault == "term" else signal.SIGKILL)]
        case "term-all":
            run.events = [Event("trainer", host, at, signal.SIGTERM) for host in range(hosts)]
        case "script":
            # The third call starts the watchdog; a host of its own that dies before has none.
            call = dice.randint(4 if hosts == 1 else 1, 6)
            run.events = [Event("calls-script", victim, call, number, seconds=dice.choice([0, 1]))]
        case "watchdog":
            run.events = [Event("watchdog", victim, dice.uniform(21, work + 70), number) for _ in range(3)]
        case "watchdog-call":
            calls = range(1, dice.randint(40, 120), dice.randint(3, 30))
            run.events = [Event("calls-watchdog", victim, n, number, seconds=dice.choice([0, 1])) for n in calls]
        case "all-watchdogs":
            run.events = [Event("watchdog", host, moment) for host in range(hosts) for moment in (at, work + 3)]
        case "reboot":
            run.events = [Event("reboot", victim, at, seconds=dice.uniform(0, 60))]
        case "reset":
            run.events = [Event("reset", victim, at)]
        case "lost" if hosts > 1:
            run.events = [Event("lost", victim, at)]
    return fault, run


def latest(world: World) -> float:
    """Return the time by which a call has to be made: a minute after the end, or the deadline."""
    alive = [host for host in world.hosts if not host.lost]
    deadline = min(host.deadline for host in alive)
    moments = [deadline]
    ended = [host for host in alive if host.ended]
    if len(ended) == len(alive) and not world.scenario.broken_bucket and not any(host.lost for host in world.hosts):
        moments.append(max(host.over_at for host in ended) + GRACE)
    moments += [host.over_at + GRACE for host in ended if _waits_for_grace(host, deadline)]
    return min(moments) + SLACK


def _waits_for_grace(host: Host, deadline: float) -> bool:
    """Return True if a host deletes the slice at the end of its grace: the first or a failed one, early enough."""
    assert host.ended
    leads = host.number == 0 or host.ended[1] != "0"
    return leads and host.over_at + GRACE + SLACK < deadline - STOP - GRACE


def check(world: World) -> None:
    """Assert that a run deleted its slice in time and not too early."""
    assert world.calls, world.report()
    assert [call for call in world.calls if call.problems] == [], world.report()
    assert world.calls[0].at <= latest(world), world.report()
    assert world.calls[-1].status in (200, 404), world.report()
    if not world.scenario.broken_bucket and not world.scenario.events:  # a kill may lose the log
        saved = {name.rpartition("/")[2][:3] for name in world.objects if "/logs/" in name}
        assert saved >= {f"0-{host.number}" for host in world.hosts if _has_left_its_mark(world, host)}, world.report()


def _has_left_its_mark(world: World, host: Host) -> bool:
    return any(name.endswith(f"/0-{host.number}") for name in world.objects)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_slice_is_deleted_once_its_program_has_ended(tmp_path: Path, batch: int) -> None:
    """In 200 runs of one to four hosts a call deletes the slice in time, and none cuts off a checkpoint or a host."""
    for seed in range(batch, RUNS, BATCHES):
        fault, run = scenario(seed)
        print(f"seed {seed}: {fault}, {len(run.trainers)} hosts")
        world = World(tmp_path / str(seed), run)
        world.run()
        check(world)


def run_of(folder: Path, trainers: list[Trainer], **changes: Any) -> World:
    """Return a run in which all hosts boot at once."""
    slices = changes.pop("slices", 1)
    script = script_of(len(trainers), changes.pop("restarts", None), slices)
    hosts_per_slice = len(trainers) // slices
    world = World(folder, Scenario(script, trainers, [0.0] * len(trainers), hosts_per_slice=hosts_per_slice, **changes))
    world.objects |= EARLIER
    world.run()
    return world


EARLIER = {"jobs/mnist/v4-16/.tpucfg/first": "77"} | {
    f"jobs/mnist/v4-16/.tpucfg/ended/77/{worker}": "0 0" for worker in ("0-1", "1-0", "1-1")
}
"""What an earlier slice of the same name has left in the bucket; its first host had the id 77."""


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("slices", [1, 2])
def test_marks_of_an_earlier_slice_count_for_nothing(tmp_path: Path, slices: int) -> None:
    """The first host waits for the hosts of its own slices, although an earlier run has left all of their marks."""
    world = run_of(tmp_path, [Trainer([(20, 0)]), *(Trainer([(50, 0)]) for _ in range(3))], slices=slices)
    check_marks = {name.rpartition("/")[2] for name in world.objects if "/ended/1000/" in name}
    assert check_marks == ({"0-1", "0-2", "0-3"} if slices == 1 else {"0-1", "1-0", "1-1"}), world.report()
    assert 50 <= world.calls[0].at <= 50 + SLACK, world.report()
    assert (world.calls[0].host, world.calls[0].problems) == (0, [])


@pytest.mark.slow
@pytest.mark.system
def test_a_program_is_restarted_as_often_as_the_spec_allows(tmp_path: Path) -> None:
    """A program that always fails starts 1 + 2 times, and not again after a reboot."""
    reboot = Event("reset", 0, 60)
    world = run_of(tmp_path, [Trainer([(10, 3)])], restarts=2, events=[reboot], answers=[503] * 3)
    container = world.hosts[0].container
    assert container, world.report()
    assert container.starts == 3, world.report()
    assert world.calls[-1].status == 200, world.report()


@pytest.mark.slow
@pytest.mark.system
def test_a_rebooted_program_continues_without_using_up_a_restart(tmp_path: Path) -> None:
    """A reboot starts the program again, even if no restart is left, and its end is the end of the slice."""
    world = run_of(tmp_path, [Trainer([(60, 0), (30, 0)], checkpoint=5)], restarts=0, events=[Event("reboot", 0, 30)])
    container = world.hosts[0].container
    assert container, world.report()
    assert (container.starts, container.code) == (2, 0), world.report()
    assert container.ended_at <= world.calls[0].at <= container.ended_at + SLACK, world.report()


@pytest.mark.slow
@pytest.mark.system
def test_without_systemd_the_watchdog_runs_alone(tmp_path: Path) -> None:
    """If systemd-run fails, the script starts the watchdog itself, which deletes the slice too."""
    world = World(tmp_path, Scenario(script_of(1, None), [Trainer([(20, 0)])], [0.0]))
    (world.programs / "systemd-run").write_text("#!/bin/bash\nexit 1\n")
    (world.programs / "setsid").write_text(f"#!/bin/bash\n{SETSID}")
    (world.programs / "setsid").chmod(0o755)
    world.run()
    check(world)


SETSID = '[[ $1 == --fork && $2 == bash ]] && exec "${0%/*}/systemctl" start "$3"'
"""The fork is a process of the simulation, which has to know of all processes."""
