"""The end of a slice that deletes itself: the real start-up script runs on simulated hosts while things go wrong."""

from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from jobs import job
from slice_faults import scenario
from slice_machines import KERNEL_SECONDS, LOADER_SECONDS
from slice_scenario import Event, Host, Scenario, Trainer
from tpu_hosts import World
from tpucfg.targets import cloud_tpu, compute_engine

DURATION = 240
"""max_run_duration in seconds; the program receives SIGTERM 48 seconds before, and SIGKILL 24 seconds before."""
STOP = 48
GRACE = 60
SLACK = 15
"""A minute is counted from what the watchdog sees: it looks every 5 seconds, and is back 5 seconds after a kill."""
RUNS = 200
BATCHES = 20


SIZES = {
    cloud_tpu: ("v4-16", "us-central2"),
    compute_engine: ("v6e-16", "us-east5"),
}
"""A size of each target whose hosts delete their slice, and its region."""
SERVICE_LIMITS = {cloud_tpu: 0, compute_engine: DURATION}
"""Seconds from the start of a VM until the service deletes it; 0 if it has no limit."""


@cache
def script_of(
    hosts: int,
    restarts: int | None,
    slices: int = 1,
    target: Any = cloud_tpu,
    duration: int = DURATION,
    exit_codes: tuple[int | str, ...] = (),
) -> str:
    """Return the start-up script of a job on this number of hosts."""
    rule = {"times": restarts, "exit_codes": [*exit_codes]} if exit_codes else restarts
    trainer = {"image": "python:3.12", "max_run_duration": f"{duration}s", "restarts": rule}
    size, region = SIZES[target]
    planned_job = job(target.NAME, size, environment={"region": region}, trainer=trainer)
    slice_ = planned_job.slice._replace(hosts=hosts, slices=slices)
    script: str = target.startup_script(planned_job._replace(rung=planned_job.rung._replace(slice=slice_)))
    return script


def latest(world: World) -> float:
    """Return the time by which a call has to be made: a minute after the end, or the deadline."""
    alive = [host for host in world.hosts if host.lost_at > world.calls[0].at]
    deadline = min(host.deadline for host in alive)
    moments = [deadline]
    ended = [host for host in alive if host.ended]
    if len(ended) == len(alive) and not world.scenario.broken_bucket and len(alive) == len(world.hosts):
        moments.append(max(host.over_at for host in ended) + GRACE)
    moments += [host.over_at + GRACE for host in ended if _waits_for_grace(host, deadline)]
    return min(moments) + SLACK


def _waits_for_grace(host: Host, deadline: float) -> bool:
    """Return True if a host deletes the slice at the end of its grace: the first or a failed one, early enough."""
    assert host.ended
    leads = host.number == 0 or host.ended[1] != "0"
    return leads and host.over_at + GRACE + SLACK < deadline - STOP - GRACE


def check(world: World) -> None:
    """Assert that a run deleted its slice, or tried to until the service's own limit, in time and not too early."""
    assert world.calls, world.report()
    assert [call for call in world.calls if call.problems] == [], world.report()
    assert world.calls[0].at <= latest(world), world.report()
    assert world.calls[-1].status in (200, 404) or all(host.lost for host in world.hosts), world.report()
    if not world.scenario.broken_bucket:
        saved = {name.rpartition("/")[2][:3] for name in world.objects if "/logs/" in name}
        assert saved >= {f"0-{host.number}" for host in world.hosts if _has_left_its_mark(world, host)}, world.report()


def _has_left_its_mark(world: World, host: Host) -> bool:
    return any(name.endswith(f"/0-{host.number}") for name in world.objects)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("target", SIZES, ids=lambda target: target.NAME)
def test_every_slice_is_deleted_once_its_program_has_ended(tmp_path: Path, target: Any, batch: int) -> None:
    """In 200 runs of one to four hosts a call deletes the slice in time, and none cuts off a checkpoint or a host."""
    for seed in range(batch, RUNS, BATCHES):
        run = scenario(seed, partial(script_of, target=target))
        run.service_limit = SERVICE_LIMITS[target]
        world = World(tmp_path / str(seed), run)
        world.run()
        check(world)


def run_of(folder: Path, trainers: list[Trainer], **changes: Any) -> World:
    """Return a run in which all hosts boot at once."""
    slices = changes.pop("slices", 1)
    options = {key: changes.pop(key) for key in ("target", "duration", "exit_codes") if key in changes}
    script = script_of(len(trainers), changes.pop("restarts", None), slices, **options)
    hosts_per_slice = len(trainers) // slices
    world = World(folder, Scenario(script, trainers, [0.0] * len(trainers), hosts_per_slice=hosts_per_slice, **changes))
    world.objects |= EARLIER
    world.run()
    return world


EARLIER = {"jobs/mnist/v4-16/.tpucfg/first": "77"} | {
    f"jobs/mnist/v4-16/.tpucfg/ended/77/{worker}": "0 0" for worker in ("0-1", "1-0", "1-1")
}
"""The marks that an earlier slice of the same name left in the bucket; its first host had the id 77."""


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("slices", [1, 2])
def test_marks_of_an_earlier_slice_count_for_nothing(tmp_path: Path, slices: int) -> None:
    """The first host waits for the hosts of its own slices, although an earlier run has left all of their marks."""
    world = run_of(tmp_path, [Trainer([(20, 0)]), *(Trainer([(50, 0)]) for _ in range(3))], slices=slices)
    marks = {name.rpartition("/")[2] for name in world.objects if "/ended/1000/" in name}
    assert marks == ({"0-1", "0-2", "0-3"} if slices == 1 else {"0-1", "1-0", "1-1"}), world.report()
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
@pytest.mark.parametrize(("exit_codes", "starts"), [((3,), 3), (("2-5", 42), 3), ((33, 42, "130-255"), 1)])
def test_only_some_exit_codes_are_worth_a_restart(tmp_path: Path, exit_codes: tuple[Any, ...], starts: int) -> None:
    """A program that fails with 3 starts again if that is one of the codes, and otherwise its slice is deleted."""
    world = run_of(tmp_path, [Trainer([(10, 3)])], restarts=2, exit_codes=exit_codes)
    container = world.hosts[0].container
    assert container, world.report()
    assert container.starts == starts, world.report()
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
@pytest.mark.parametrize("hosts", [1, 3])
def test_the_group_is_deleted_before_the_service_deletes_its_hosts(tmp_path: Path, hosts: int) -> None:
    """The watchdog is earlier than a service that deletes VMs after the duration, which would leave their group."""
    endless = [Trainer([(9999, 0)], checkpoint=20) for _ in range(hosts)]
    # Without marks, the hosts of a group wait for each other until the deadline.
    world = run_of(tmp_path, endless, target=compute_engine, service_limit=DURATION, broken_bucket=True)
    check(world)
    assert not any(host.lost for host in world.hosts), world.report()
    assert all(host.container and host.container.code == 143 for host in world.hosts), world.report()
    left = DURATION - LOADER_SECONDS - KERNEL_SECONDS - world.calls[0].at
    assert 5 < left < 20 or hosts == 1, world.report()


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("target", SIZES, ids=lambda target: target.NAME)
def test_a_host_whose_docker_is_dead_ends_the_slice(tmp_path: Path, target: Any) -> None:
    """A host on which docker never answers has failed once the script has given up, long before the deadline."""
    trainers = [Trainer([(9999, 0)]) for _ in range(2)]
    world = run_of(tmp_path, trainers, target=target, duration=7200, events=[Event("docker", 1, -1)])
    assert TEN_MINUTES <= world.calls[0].at <= TEN_MINUTES + GRACE + SLACK, world.report()
    assert world.calls[0].problems == []


TEN_MINUTES = 600
"""The time in which the script tries a command again."""


REFUSALS = {
    "manifest for a/b:2 not found: manifest unknown: Requested entity": 3600,
    "denied: Permission artifactregistry.repositories.downloadArtifacts denied": 3600,
    "denied: of a job that ends before the last attempt": DURATION,
}
"""Errors of docker for a pull, and the duration of the job."""


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("target", SIZES, ids=lambda target: target.NAME)
def test_the_reason_of_a_failed_start_outlives_the_slice(tmp_path: Path, target: Any, hosts: int, refusal: str) -> None:
    """Each host saves what the start-up script has printed, where the error of docker is."""
    trainers = [Trainer([(9999, 0)]) for _ in range(hosts)]
    world = run_of(tmp_path, trainers, target=target, duration=REFUSALS[refusal], refused_pull=refusal)
    assert len(logs(world)) == hosts, world.report()
    assert all(refusal in text for text in logs(world)), logs(world)
    assert world.calls[0].problems == []


def logs(world: World) -> list[str]:
    """Return the texts of the saved logs."""
    return [text for name, text in world.objects.items() if "/logs/" in name]


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(("refused", "saved"), [(0, ["step 1"]), (3, ["step 1"]), (999, [])])
def test_the_log_of_a_program_is_saved_before_the_end(tmp_path: Path, refused: int, saved: list[str]) -> None:
    """A bucket that refuses the log is asked again for a minute, each refusal is printed, and the slice is deleted."""
    world = run_of(tmp_path, [Trainer([(20, 0)])], refused_uploads=refused)
    assert [text.strip() for text in logs(world)] == saved, world.report()
    printed = (world.hosts[0].folder / "watchdog.log").read_text(encoding="utf-8")
    refusals = printed.count("tpucfg: logs%2F0-0-1000.txt is not in the bucket: HTTP status 503")
    assert refusals == (refused if saved else GRACE // 5 + 1), world.report()
    assert world.calls[0].problems == [], world.report()
    assert 20 + 5 * refusals - 5 <= world.calls[0].at <= 20 + GRACE + SLACK, world.report()


@pytest.mark.slow
@pytest.mark.system
def test_an_upgrade_of_the_system_does_not_end_the_program(tmp_path: Path) -> None:
    """The timers of apt, which would upgrade docker and so stop the program, are off before the program starts."""
    world = run_of(tmp_path, [Trainer([(60, 0)])], events=[Event("upgrade", 0, 30)])
    container = world.hosts[0].container
    assert container, world.report()
    assert (container.code, container.ended_at) == (0, 60), world.report()
    assert 60 <= world.calls[0].at <= 60 + SLACK, world.report()


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("attribute", ["agent-worker-number", "worker-id", "tpu-env"])
def test_the_first_host_is_known_by_each_attribute(tmp_path: Path, attribute: str) -> None:
    """Whichever attribute has the hosts' numbers, the first host deletes the slice as soon as all marks are there."""
    trainers = [Trainer([(20, 0)]), Trainer([(30, 0)])]
    world = run_of(tmp_path, trainers, target=compute_engine, worker_attribute=attribute)
    assert 30 <= world.calls[0].at <= 30 + SLACK, world.report()
    assert (world.calls[0].host, world.calls[0].problems) == (0, []), world.report()


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
