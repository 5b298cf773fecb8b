"""The end of a slice on real machines: systemd, docker and the rendered script, while things go wrong."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import machine_tree
import pytest
from runs import END, ENDS, FAILS, IGNORES, STOP, TRAINS, Result, Run, result_of
from services import NO_ANSWER
from vm import Machine

from tpucfg.targets import compute_engine

REQUIRE: Final = "TPUCFG_REQUIRE_MACHINE"
AT_ONCE: Final = 28
"""Machines that run at once: they mostly sleep."""
HANGS: Final = "trap '' TERM INT HUP; while :; do /bin/sleep 1000; done"
"""A client that survives SIGTERM."""


def fault(program: str, text: str = HANGS) -> Callable[[Machine], None]:
    """Let a client of the machine do something else."""
    return lambda machine: machine.fault(program, text)


def services(**changes: Any) -> Callable[[Machine], None]:
    """Change how the services answer."""

    def change(machine: Machine) -> None:
        for name, value in changes.items():
            setattr(machine.cloud, name, value)

    return change


def kill(unit: str) -> Callable[[Machine], None]:
    """Kill all processes of a unit."""
    return lambda machine: _run(machine, "/usr/bin/systemctl", "kill", "--signal=KILL", unit)


def _run(machine: Machine, *command: str) -> None:
    machine.run(*command)


def read_only(machine: Machine) -> None:
    """Let the disk be read-only from the first boot on."""
    machine.is_read_only = True


def clock(offset: str) -> Callable[[Machine], None]:
    """Turn the clock that the processes of the script read, by libfaketime."""

    def turn(machine: Machine) -> None:
        file = "FAKETIME_TIMESTAMP_FILE=/faults/clock\nFAKETIME_NO_CACHE=1\nDONT_FAKE_MONOTONIC=1\n"
        machine.fault("clock", offset)
        machine.fault("environment", f"LD_PRELOAD={machine_tree.FAKETIME}\n{file}")

    return turn


def reboots(*, delivers: bool) -> Callable[[Machine], None]:
    """Reboot in an orderly way, with or without the script."""
    return lambda machine: machine.reboot(delivers=delivers)


def resets(*, delivers: bool) -> Callable[[Machine], None]:
    """Take the power for a moment."""
    return lambda machine: machine.reset(delivers=delivers)


SEVERAL: Final[dict[str, Any]] = {"size": "v2-32"}
GROUP: Final[dict[str, Any]] = {"target": compute_engine, "size": "v6e-16", "region": "us-east5"}
INSTANCE: Final[dict[str, Any]] = {"target": compute_engine, "size": "v6e-4", "region": "us-east5"}

RUNS: Final = {
    # The program.
    "the program ends": Run(ENDS, 120, END),
    "the program fails": Run(FAILS, 120, END),
    "the program runs until SIGTERM": Run(TRAINS, 60, 60, log="saved"),
    "the program ignores SIGTERM": Run(IGNORES, 60, 60),
    "the program fails, with `restarts`": Run(
        FAILS, 150, END + 8, 30, trainer={"restarts": 2}, journal="restart 2 of 2"
    ),
    "the program fails with a code that is not in `exit_codes`": Run(
        FAILS, 120, END, trainer={"restarts": {"times": 2, "exit_codes": [42]}}
    ),
    "the image does not exist": Run(
        ENDS, 120, 60, trainer={"image": "us-docker.pkg.dev/my-project/train/mnist:2.0"}, log="manifest unknown"
    ),
    "the program fails, without `max_run_duration`": Run(FAILS, None, 0, trainer={"restarts": 1}, log=""),
    # Several hosts, of which this is one.
    "the program of the first host ends": Run(ENDS, 120, END, **SEVERAL),
    "the program of another host ends": Run(ENDS, 90, 90, cloud={"worker": 1}, **SEVERAL),
    "the program of another host fails": Run(FAILS, 120, END, cloud={"worker": 1}, **SEVERAL),
    "the program of the first host ends after SIGTERM": Run(TRAINS, 60, 60, log="saved", **SEVERAL),
    "the program ends on a group of Compute Engine": Run(ENDS, 120, END, **GROUP),
    "the program runs on a group of Compute Engine": Run(TRAINS, 60, 45, log="saved", **GROUP),
    "the program ends on an instance of Compute Engine": Run(ENDS, 120, END, **INSTANCE),
    # Docker and systemd.
    "Docker's client hangs, and survives SIGTERM": Run(TRAINS, 60, 60, during=[(8, fault("docker"))], log=""),
    "Docker's client hangs from the first boot on": Run(ENDS, 40, 40, during=[(-1, fault("docker"))], log=""),
    "Docker is stopped": Run(
        IGNORES,
        60,
        60,
        during=[(8, lambda m: _run(m, "/usr/bin/systemctl", "stop", "docker.socket", "docker"))],
        log="",
    ),
    "`systemctl` hangs from the first boot on": Run(ENDS, 60, 60, during=[(-1, fault("systemctl"))], log=""),
    "`systemctl` hangs later": Run(ENDS, 120, END, 50, during=[(3, fault("systemctl"))]),
    "both units are killed while the program runs": Run(
        TRAINS, 60, 60, during=[(8, kill("tpucfg-deadline")), (9, kill("tpucfg-watchdog"))], log="saved"
    ),
    "both units are killed after the program's end": Run(
        ENDS, 120, END, during=[(20, kill("tpucfg-deadline")), (21, kill("tpucfg-watchdog"))]
    ),
    # The disk.
    "the disk is full at the first boot": Run(ENDS, 40, 40, during=[(-1, Machine.fill)], log=""),
    "the disk is read-only at the first boot": Run(ENDS, 40, 40, during=[(-1, read_only)], log=""),
    "the disk is full later": Run("echo step 1; sleep 15", 120, END + 12, during=[(8, Machine.fill)], log=""),
    "the disk is full, and a reboot does not deliver the script": Run(
        TRAINS, 50, 50, during=[(8, Machine.fill), (10, resets(delivers=False))], log=""
    ),
    # Google's services.
    "the metadata server fails beyond the deadline": Run(
        TRAINS, 40, 50, 40, during=[(8, services(metadata=503)), (50, services(metadata=200))], log=""
    ),
    "the metadata server does not answer beyond the deadline": Run(
        TRAINS, 40, 50, 45, during=[(25, services(metadata=NO_ANSWER)), (50, services(metadata=200))], log=""
    ),
    "all services answer after 4 seconds": Run(TRAINS, 60, 60, 30, cloud={"delay": 4}, log=""),
    "the API refuses with 403, then answers": Run(
        TRAINS, 40, 40, cloud={"deletions": [403]}, journal="needs the permission tpu.nodes.delete", log=""
    ),
    "the API answers 404": Run(TRAINS, 40, 40, cloud={"deletions": [404]}, log=""),
    "the API fails with 500, 429, 503, then answers": Run(TRAINS, 40, 40, cloud={"deletions": [500, 429, 503]}, log=""),
    "the API does not answer, then does": Run(TRAINS, 40, 40, cloud={"deletions": [NO_ANSWER]}, log=""),
    "the network is cut beyond the deadline": Run(
        TRAINS, 40, 60, 45, during=[(20, Machine.cut_network), (60, lambda m: m.cut_network(is_up=True))], log=""
    ),
    "the bucket refuses the log": Run(ENDS, 120, END, cloud={"uploads": 403}, log=""),
    "the bucket does not answer": Run(ENDS, 120, END, cloud={"uploads": NO_ANSWER}, log=""),
    "the account may not delete": Run(
        ENDS, 120, END, cloud={"permission": False}, journal="may not delete the slice: it needs the permission"
    ),
    "the API does not say if the account may delete": Run(ENDS, 120, END, cloud={"permission": 503}),
    # Reboots.
    "the host reboots while the program runs": Run(TRAINS, 120, 70, 40, during=[(10, reboots(delivers=True))]),
    "a reboot does not deliver the script again": Run(TRAINS, 60, 60, during=[(10, reboots(delivers=False))], log=""),
    "the host reboots while the program runs, with `restarts`": Run(
        "[ ! -e /again ] || exit 0; touch /again; sleep 100",
        150,
        70,
        40,
        trainer={"restarts": 2},
        during=[(10, reboots(delivers=True))],
        log="",
    ),
    "the host reboots after the program's end": Run(ENDS, 150, 80, 40, during=[(20, reboots(delivers=True))], log=""),
    "a reboot after the program's end does not deliver the script again": Run(
        ENDS, 50, 50, during=[(20, reboots(delivers=False))]
    ),
    "the host loses its power while the script runs": Run(ENDS, 150, END, 30, during=[(0.5, resets(delivers=True))]),
    "the host loses its power, and the script is not delivered again": Run(
        TRAINS, 50, 50, during=[(10, resets(delivers=False))], log=""
    ),
    "the host reboots after the deadline, without the script": Run(
        TRAINS, 30, 30, cloud={"deletions": [503]}, during=[(35, reboots(delivers=False))], log=""
    ),
    # The clock.
    "the clock jumps a day ahead": Run(TRAINS, 60, 60, during=[(-1, clock("+0")), (10, clock("+1d"))], log="saved"),
    "the clock jumps an hour back": Run(TRAINS, 60, 60, during=[(-1, clock("+0")), (10, clock("-1h"))], log="saved"),
}


@pytest.fixture(scope="session")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Result]]]:
    """Start the selected runs side by side."""
    if reason := machine_tree.missing():
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    tree, folder = machine_tree.make(), tmp_path_factory.mktemp("machines")
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    selected = [str(item.callspec.params["name"]) for item in items if "results" in item.fixturenames]
    names = sorted(selected, key=lambda name: -RUNS[name].longest)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            name: pool.submit(result_of, f"tpucfg-{os.getpid()}-{number}", RUNS[name], folder / str(number), tree)
            for number, name in enumerate(names)
        }
        STOP.set()


@pytest.mark.machine
@pytest.mark.parametrize("name", RUNS)
def test_the_slice_is_deleted_at_its_time(results: dict[str, Future[Result]], name: str) -> None:
    """The slice is deleted a minute after the program's end, or at the deadline, and the log is saved."""
    run, result = RUNS[name], results[name].result()
    if not run.at:
        assert result.calls == [], result.report
        return
    assert result.calls, result.report
    assert run.at - 1 <= result.calls[0].at <= run.at + run.late, f"{result.calls}\n{result.report}"
    assert result.calls[-1].status in (200, 404), result.report
    assert run.log in result.saved, result.report
    assert run.journal in result.report
