"""Faults of machines and of the services around them, as functions of a machine."""

import shlex
from typing import Any, Final

import machine_tree
from runs import Act
from vm import Machine

HANGS: Final = "trap '' TERM INT HUP; while :; do /bin/sleep 1000; done"
"""A client that survives SIGTERM."""


def fault(program: str, text: str = HANGS) -> Act:
    """Let a client of the machine do something else."""
    return lambda machine: machine.fault(program, text)


def services(**changes: Any) -> Act:
    """Change how the services answer."""

    def change(machine: Machine) -> None:
        for name, value in changes.items():
            setattr(machine.cloud, name, value)

    return change


def on(worker: int, act: Act) -> Act:
    """Let only one host of several have a fault."""
    return lambda machine: act(machine) if machine.worker == worker else None


def systemctl(*arguments: str) -> Act:
    """Run systemd's real client in the machine."""

    def call(machine: Machine) -> None:
        machine.run("/usr/bin/systemctl", *arguments)

    return call


def kill(unit: str) -> Act:
    """Kill all processes of a unit."""
    return systemctl("kill", "--signal=KILL", unit)


def masked(*units: str) -> Act:
    """Prevent units from starting at any boot."""

    def mask(machine: Machine) -> None:
        for unit in units:
            (machine.root / "etc/systemd/system" / unit).symlink_to("/dev/null")

    return mask


def read_only(machine: Machine) -> None:
    """Let the disk be read-only from the next boot on."""
    machine.is_read_only = True


def clock(offset: str) -> Act:
    """Turn the clock that the processes of the script read, by libfaketime, which reads it every ten seconds."""

    def turn(machine: Machine) -> None:
        machine.fault("clock", offset)
        machine.fault("environment", f"LD_PRELOAD={machine_tree.FAKETIME}\nDONT_FAKE_MONOTONIC=1\n")

    return turn


def hold(command: str) -> Act:
    """Hold the start-up script before the first command that begins with a text, in functions and subshells too."""
    trap = f"case $BASH_COMMAND in {shlex.quote(command)}*) trap - DEBUG; /bin/sleep 1000 ;; esac"
    return fault("hold", f"unset BASH_ENV; set -o functrace; trap {shlex.quote(trap)} DEBUG")


LET_GO: Final = fault("hold", "")
"""Nothing holds the script at its next start."""


def network(*, is_up: bool) -> Act:
    """Cut the network, or bring it back."""
    return lambda machine: machine.cut_network(is_up=is_up)


def reboots(*, delivers: bool) -> Act:
    """Reboot in an orderly way, with or without the script."""
    return lambda machine: machine.reboot(delivers=delivers)


def resets(*, delivers: bool, then: Act = LET_GO) -> Act:
    """Take the power for a moment; nothing holds the script then, or something else."""

    def reset(machine: Machine) -> None:
        then(machine)
        machine.reset(delivers=delivers)

    return reset
