"""The table of outcomes in docs/targets/hosts.md, with the runs behind each of its rows."""

from collections.abc import Mapping
from typing import Any, Final

from host_faults import (
    clock,
    fault,
    hold,
    kill,
    masked,
    network,
    on,
    read_only,
    reboots,
    resets,
    services,
    systemctl,
)
from runs import END, ENDS, FAILS, IGNORES, LATE, MINUTE, TRAINS, Run, by_worker
from services import NO_ANSWER
from vm import Machine

INSTANCE: Final[dict[str, Any]] = {
    "target": "compute-engine",
    "size": "v6e-4",
    "region": "us-east5",
}
SLICE: Final[dict[str, Any]] = {"size": "v2-32"}
GROUP: Final[dict[str, Any]] = {"target": "compute-engine", "size": "v6e-16", "region": "us-east5"}
SLICES: Final[dict[str, Any]] = {"size": "v5litepod-16x2", "region": "us-west4"}
THREE: Final = (0, 1, 2)
"""Three of the four hosts of SLICE and GROUP, as many as a row needs."""
WRITES: Final = ('write_once "$1/tpucfg-deadline.service"', "ln --symbolic")
"""Commands that write the unit of the deadline."""
STARTS: Final = tuple(
    f"timeout --kill-after=5 30 {command}" for command in ("systemctl start", "sync", "systemd-run")
)
"""Commands that start it, flush its disk, and start the watchdog."""
DOCKERS: Final = (
    "retry timeout",
    "docker login",
    "try_docker pull",
    "docker create",
    "retry try_docker start",
)
"""Commands on the way to the program."""


def losses(*points: str) -> Run:
    """Return a run whose host loses its power every ten seconds, each time before another command of the script."""
    holds = [*map(hold, points), hold("none")]
    cuts = [
        (10 * number, resets(delivers=True, then=then))
        for number, then in enumerate(holds)
        if number
    ]
    return Run(TRAINS, 100, 100, during=[(-1, holds[0]), *cuts], log="saved")


PROGRAM: Final[Mapping[str, tuple[Run, ...]]] = {
    "the program ends": (Run(ENDS, 120, END), Run(ENDS, 120, END, **INSTANCE)),
    "the program fails": (Run(FAILS, 120, END),),
    "the program runs until SIGTERM": (Run(TRAINS, 60, 60, log="saved"),),
    "the program ignores SIGTERM": (Run(IGNORES, 60, 60),),
    "the program fails, with `restarts`": (
        Run(FAILS, 150, END + 8, 30, trainer={"restarts": 2}, journal="restart 2 of 2"),
    ),
    "the program fails with a code that is not in `exit_codes`": (
        Run(FAILS, 120, END, trainer={"restarts": {"times": 2, "exit_codes": [42]}}),
    ),
    "the image does not exist": (
        Run(
            ENDS,
            120,
            MINUTE,
            trainer={"image": "us-docker.pkg.dev/my-project/train/mnist:2.0"},
            log="manifest unknown",
        ),
    ),
    "the program fails, without `max_run_duration`": (
        Run(FAILS, None, 0, trainer={"restarts": 1}, log=""),
    ),
}

# Long durations, because several hosts wait for the deadline in its last fifth.
HOSTS: Final[Mapping[str, tuple[Run, ...]]] = {
    "it ends on all hosts": (
        Run(ENDS, 180, END, by=(0,), logs=3, workers=THREE, **SLICE),
        Run(ENDS, 180, END, by=(0,), logs=2, workers=(0, 3), **GROUP),
    ),
    "it ends on the first host, and hangs on another": (
        Run(by_worker(ENDS, IGNORES), 180, END, by=(0,), workers=(0, 1), **SLICE),
    ),
    "it ends on the others, and hangs on the first host": (
        Run(by_worker(IGNORES, ENDS), 60, 60, workers=(0, 1), **SLICE),
    ),
    "it ends on the first host of another slice": (
        Run(by_worker(IGNORES, ENDS), 60, 60, workers=(0, 4), cloud={"slice_hosts": 4}, **SLICES),
    ),
    "it fails on another host, and runs on": (
        Run(by_worker(TRAINS, TRAINS, FAILS), 180, END, by=(2,), workers=THREE, **SLICE),
        Run(
            by_worker(TRAINS, FAILS),
            180,
            END + 3,
            25,
            by=(1,),
            workers=(0, 1),
            trainer={"restarts": 1},
            **GROUP,
        ),
    ),
    "it runs until SIGTERM, and checkpoints take 4 and 8 seconds": (
        Run(
            by_worker(TRAINS, TRAINS.replace("4", "8")),
            90,
            90,
            log="saved",
            logs=2,
            workers=(0, 1),
            **SLICE,
        ),
    ),
    "the first host is lost": (
        Run(
            TRAINS,
            60,
            60,
            by=(1, 2),
            during=[(10, on(0, Machine.cut_power))],
            log="saved",
            workers=THREE,
            **SLICE,
        ),
    ),
    "another host is lost, and the program fails on the others": (
        Run(
            "echo step 1; sleep 15; exit 3",
            180,
            END + 12,
            by=(0, 1),
            during=[(10, on(2, Machine.cut_power))],
            workers=THREE,
            **GROUP,
        ),
    ),
    "the network of the first host is cut for ever": (
        Run(
            TRAINS,
            60,
            60,
            by=(1,),
            during=[(8, on(0, network(is_up=False)))],
            log="saved",
            workers=(0, 1),
            **SLICE,
        ),
    ),
    "another host reboots": (
        Run(
            TRAINS,
            240,
            10 + MINUTE,
            80,
            by=(1,),
            during=[(10, on(1, reboots(delivers=True)))],
            workers=(0, 1),
            **SLICE,
        ),
    ),
    "only another host has the script, and its program ends": (
        Run(ENDS, 90, 90, workers=(1,), **SLICE),
    ),
    "it runs until SIGTERM on a group of Compute Engine": (
        Run(TRAINS, 60, 45, log="saved", **GROUP),
    ),
}

DOCKER: Final[Mapping[str, tuple[Run, ...]]] = {
    "Docker's client hangs, and survives SIGTERM": (
        Run(TRAINS, 60, 60, during=[(8, fault("docker"))], log=""),
    ),
    "Docker's client hangs from the first boot on": (
        Run(ENDS, 40, 40, during=[(-1, fault("docker"))], log=""),
    ),
    "Docker's server hangs": (
        Run(TRAINS, 60, 60, during=[(8, systemctl("kill", "--signal=STOP", "docker"))], log=""),
    ),
    "Docker is stopped": (
        Run(IGNORES, 60, 60, during=[(8, systemctl("stop", "docker.socket", "docker"))], log=""),
    ),
    "Docker does not start": (
        Run(ENDS, 50, 50, during=[(-1, masked("docker.service", "docker.socket"))], log=""),
    ),
    "`systemctl` hangs from the first boot on": (
        Run(ENDS, 60, 60, during=[(-1, fault("systemctl"))], log=""),
    ),
    "`systemctl` hangs later": (Run(ENDS, 120, END, 50, during=[(3, fault("systemctl"))]),),
    "systemd hangs": (Run(TRAINS, 60, 60, during=[(8, Machine.hang)], log=""),),
    "both units are killed while the program runs": (
        Run(
            TRAINS,
            60,
            60,
            during=[(8, kill("tpucfg-deadline")), (9, kill("tpucfg-watchdog"))],
            log="saved",
        ),
    ),
    "both units are killed after the program's end": (
        Run(ENDS, 120, END, during=[(15, kill("tpucfg-deadline")), (16, kill("tpucfg-watchdog"))]),
    ),
}

DISK: Final[Mapping[str, tuple[Run, ...]]] = {
    "the disk is full at the first boot": (Run(ENDS, 40, 40, during=[(-1, Machine.fill)], log=""),),
    "the disk is read-only at the first boot": (
        Run(ENDS, 40, 40, during=[(-1, read_only)], log=""),
    ),
    "the disk is full later": (
        Run("echo step 1; sleep 15", 120, END + 12, during=[(8, Machine.fill)], log=""),
    ),
    "the disk is read-only later": (
        Run(
            "echo step 1; sleep 25",
            150,
            END + 22,
            during=[(18, Machine.fail_disk)],
            is_ext4=True,
            log="",
        ),
        Run(TRAINS, 60, 60, during=[(8, Machine.fail_disk)], is_ext4=True, log=""),
    ),
    "the disk hangs later": (
        Run(TRAINS, 60, 60, during=[(8, Machine.hang_disk)], is_ext4=True, log=""),
    ),
    "the disk is full or read-only, and a reboot does not deliver the script": (
        Run(TRAINS, 50, 50, during=[(8, Machine.fill), (10, resets(delivers=False))], log=""),
        Run(TRAINS, 50, 50, during=[(8, read_only), (10, resets(delivers=False))], log=""),
    ),
    "the disk is full or read-only, and a reboot delivers the script": (
        Run(
            TRAINS,
            60,
            10 + MINUTE,
            60 - 10 - MINUTE + LATE,
            during=[(8, Machine.fill), (10, resets(delivers=True))],
            log="",
        ),
        Run(
            TRAINS,
            60,
            10 + MINUTE,
            60 - 10 - MINUTE + LATE,
            during=[(8, read_only), (10, resets(delivers=True))],
            log="",
        ),
    ),
}

SERVICES: Final[Mapping[str, tuple[Run, ...]]] = {
    "the metadata server fails beyond the deadline": (
        Run(
            TRAINS,
            40,
            60,
            40,
            during=[
                *(
                    (8 + 10 * number, services(metadata=status))
                    for number, status in enumerate((403, 404, 429, 500, 503))
                ),
                (60, services(metadata=200)),
            ],
            log="",
        ),
    ),
    "the metadata server does not answer beyond the deadline": (
        Run(
            TRAINS,
            40,
            50,
            45,
            during=[(25, services(metadata=NO_ANSWER)), (50, services(metadata=200))],
            log="",
        ),
    ),
    "the metadata server fails while the script starts": (
        Run(
            ENDS,
            150,
            25 + END,
            45,
            during=[(0, services(metadata=503)), (25, services(metadata=200))],
        ),
    ),
    "all services answer after 4 seconds": (Run(TRAINS, 60, 60, 30, cloud={"delay": 4}, log=""),),
    "the API refuses with 403, then answers": (
        Run(
            TRAINS,
            40,
            40,
            cloud={"deletions": [403]},
            journal="needs the permission tpu.nodes.delete",
            log="",
        ),
    ),
    "the API answers 404": (Run(TRAINS, 40, 40, cloud={"deletions": [404]}, log=""),),
    "the API fails with 500, 429, 503, then answers": (
        Run(TRAINS, 40, 40, cloud={"deletions": [500, 429, 503]}, log=""),
    ),
    "the API does not answer, then does": (
        Run(TRAINS, 40, 40, cloud={"deletions": [NO_ANSWER]}, log=""),
    ),
    "the network is cut beyond the deadline": (
        Run(
            TRAINS,
            40,
            60,
            45,
            during=[(20, network(is_up=False)), (60, network(is_up=True))],
            log="",
        ),
    ),
    "the network is cut while the script starts": (
        Run(
            ENDS, 40, 60, 45, during=[(0, network(is_up=False)), (60, network(is_up=True))], log=""
        ),
    ),
    "the network is cut around the program's end": (
        Run(ENDS, 240, END, 80, during=[(3, network(is_up=False)), (20, network(is_up=True))]),
    ),
    "the bucket refuses the log": (Run(ENDS, 120, END, cloud={"uploads": 403}, log=""),),
    "the bucket does not answer": (Run(ENDS, 120, END, cloud={"uploads": NO_ANSWER}, log=""),),
    "the account may not delete": (
        Run(
            ENDS,
            120,
            END,
            cloud={"permission": False},
            journal="may not delete the slice: it needs the permission",
        ),
    ),
    "the API does not say if the account may delete": (
        Run(ENDS, 120, END, cloud={"permission": 503}),
    ),
}

REBOOTS: Final[Mapping[str, tuple[Run, ...]]] = {
    "the host reboots while the program runs": (
        Run(TRAINS, 240, 10 + MINUTE, 80, during=[(10, reboots(delivers=True))]),
        Run(
            TRAINS,
            240,
            6 + MINUTE,
            80,
            during=[(-1, hold("touch /run/tpucfg/ready")), (6, resets(delivers=True))],
            log="",
        ),
    ),
    "a reboot does not deliver the script again": (
        Run(TRAINS, 60, 60, during=[(10, reboots(delivers=False))], log=""),
    ),
    "the host reboots while the program runs, with `restarts`": (
        Run(
            "[ ! -e /again ] || exit 0; echo >/again; sleep 100",
            240,
            10 + MINUTE,
            80,
            trainer={"restarts": 2},
            during=[(10, reboots(delivers=True))],
            log="",
        ),
    ),
    "the host reboots after the program's end": (
        Run(ENDS, 240, 15 + MINUTE, 80, during=[(15, reboots(delivers=True))], log=""),
    ),
    "a reboot after the program's end does not deliver the script again": (
        Run(ENDS, 50, 50, during=[(15, reboots(delivers=False))]),
    ),
    "the host loses its power at any point of the script": (
        losses(*WRITES, *STARTS[:2]),
        losses("mkdir --parents /run/tpucfg", STARTS[2], *DOCKERS[:2]),
        losses(*DOCKERS[2:]),
    ),
    "the host loses its power at any point of the script, which is not delivered again": tuple(
        Run(ENDS, 30, 30, during=[(-1, hold(point)), (6, resets(delivers=False))], log="")
        for point in (*STARTS, "docker create")
    ),
    "the host loses its power before it has written the unit, and the script is not delivered again": (
        Run(ENDS, 30, 0, during=[(-1, hold(WRITES[1])), (6, resets(delivers=False))], log=""),
    ),
    "the host loses its power while the program runs, and the script is not delivered again": (
        Run(TRAINS, 50, 50, during=[(10, resets(delivers=False))], log=""),
    ),
    "the host reboots after the deadline, without the script": (
        Run(
            TRAINS,
            30,
            30,
            cloud={"deletions": [503]},
            during=[(35, reboots(delivers=False))],
            log="",
        ),
    ),
}

CLOCK: Final[Mapping[str, tuple[Run, ...]]] = {
    "the clock jumps a day ahead": (
        Run(
            TRAINS,
            60,
            60,
            during=[(-1, clock("+0")), (8, clock("+1d")), (20, kill("tpucfg-deadline"))],
            log="saved",
        ),
    ),
    "the clock jumps an hour back": (
        Run(
            TRAINS,
            60,
            60,
            during=[(-1, clock("+0")), (8, clock("-1h")), (20, kill("tpucfg-deadline"))],
            log="saved",
        ),
    ),
    "the clock is an hour back after a reboot": (
        Run(
            TRAINS,
            60,
            70,
            25,
            trainer={"restarts": 1},
            during=[(-1, clock("+0")), (9, clock("-1h")), (10, reboots(delivers=True))],
            log="saved",
        ),
    ),
    "the clock is a day ahead after a reboot": (
        Run(
            TRAINS,
            60,
            10,
            20,
            during=[(-1, clock("+0")), (9, clock("+1d")), (10, reboots(delivers=True))],
            log="",
        ),
    ),
}

RUNS: Final[dict[str, tuple[Run, ...]]] = {
    **PROGRAM,
    **{f"several hosts: {row}": runs for row, runs in HOSTS.items()},
    **DOCKER,
    **DISK,
    **SERVICES,
    **REBOOTS,
    **CLOCK,
}
"""The runs of each row of the table, by what happens."""
