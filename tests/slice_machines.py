"""The machines of a simulated slice: systemd, docker and the program in its container, and faults of each.

They behave as documented:

- The guest agent runs the start-up script at each boot, and its output is in the journal
  (cloud.google.com/compute/docs/instances/startup-scripts/linux).
- systemd restarts a unit with Restart=always, here 5 seconds after its process has died, however that happened, and
  kills the rest of its group (systemd.service(5), systemd.kill(5)); `systemctl is-system-running` prints `stopping`
  while the host shuts down (systemctl(1)).
- dockerd sends SIGTERM to its containers when the host shuts down, waits for their stop timeout, and marks a container
  as exited with status 255 if the host went down without it (github.com/moby/moby, daemon/daemon.go).
- An upgrade by apt's timers stops docker, and so the program (github.com/docker/for-linux/issues/1155).
- `maxRunDuration` deletes each VM when the time has passed since its start, which is before the boot
  (cloud.google.com/compute/docs/instances/limit-vm-runtime).
- Each step of the program needs all hosts: none completes while another one has stopped, and some time after that it
  fails (docs.jax.dev/en/latest/fault_tolerance.html).
"""

import signal
from pathlib import Path
from typing import Final

from slice_clock import Actor, Simulation
from slice_scenario import EPOCH, Container, Event, Host

RESTART_SECONDS: Final = 5
"""RestartSec of the unit."""
BOOT_SECONDS: Final = 40
LOADER_SECONDS: Final = 10
"""The time from the start of a VM to that of its kernel, from which /proc/uptime counts."""
KERNEL_SECONDS: Final = 25
"""The time from the start of the kernel to that of the start-up script."""
UPGRADES: Final = "apt-daily-upgrade.timer"
STOP_SECONDS: Final = 90
"""The time that systemd gives docker to stop (DefaultTimeoutStopSec)."""
MOVED: Final = {
    "/var/lib/tpucfg": "lib",
    "/run/tpucfg": "run",
    "/proc/uptime": "uptime",
    "/sys/kernel/mm/transparent_hugepage/enabled": "hugepages",
}
"""Paths of the script, and those in the host's folder that replace them."""


class Machines(Simulation):
    """Hosts that boot, run the program, shut down and break."""

    def boot(self, host: Host) -> None:
        """Start a host: the guest agent runs the start-up script."""
        host.up, host.stopping, host.booted_at = True, False, self.now
        for name in ("lib", "run"):
            (host.folder / name).mkdir(parents=True, exist_ok=True)
        (host.folder / "uptime").write_text(f"{KERNEL_SECONDS}.25 4321.01\n", encoding="utf-8")
        script, text = host.folder / "startup-script", self.scenario.script
        for path, name in MOVED.items():
            text = text.replace(path, str(host.folder / name))
        script.write_text(text, encoding="utf-8")
        self.start(host, "script", script)
        if self.scenario.service_limit and not host.limited:
            host.limited = True
            limit = self.scenario.service_limit - KERNEL_SECONDS - LOADER_SECONDS
            self.at(self.now + limit, lambda: self._delete_host(host))

    def _delete_host(self, host: Host) -> None:
        self.note(host, "deleted by the service")
        host.lost_at = self.now
        self._cut_off(host)

    def died(self, actor: Actor) -> None:
        """Restart the unit of the watchdog, as systemd does."""
        host = actor.host
        if actor.name == "script":
            host.script_ended_at = self.now
        elif host.up and not host.stopping:
            self.at(self.now + RESTART_SECONDS, lambda: self._restart_unit(host))

    def _restart_unit(self, host: Host) -> None:
        if host.up and not host.stopping and "watchdog" not in host.actors:
            self.start(host, "watchdog", host.folder / "run/watchdog")

    def happen(self, event: Event) -> None:
        """Let something go wrong, if the host is up."""
        host = self.hosts[event.host]
        host.docker_dead |= event.kind == "docker"
        if not host.up:
            return
        self.note(host, f"{event.kind} {event.signal}")
        if event.kind == "trainer":
            self.signal_program(host, event.signal)
        elif event.kind == "lost":
            host.lost_at = self.now
            self._cut_off(host)
        elif event.kind == "reset":
            self._cut_off(host)
            self.at(self.now + BOOT_SECONDS, lambda: self.boot(host))
        elif event.kind == "reboot":
            self._shut_down(host, event)
        elif event.kind == "upgrade":
            if UPGRADES not in host.masked:
                self.signal_program(host, signal.SIGTERM)
        elif event.kind in ("script", "watchdog"):
            self.kill(host, event.kind, event.signal)

    def _shut_down(self, host: Host, event: Event) -> None:
        """Shut down as systemd does; `seconds` is how long the watchdog outlives the container's first signal."""
        host.stopping = True
        self.signal_program(host, signal.SIGTERM)
        for name in ("script", "watchdog"):
            self.at(self.now + event.seconds, lambda name=name: self.kill(host, name, signal.SIGTERM))  # type: ignore[misc]
        container = host.container
        patience = max(event.seconds, (host.trainer.checkpoint or 0) + 1 if container else 0)
        self.at(self.now + min(patience, STOP_SECONDS), lambda: self._restart_host(host))

    def _restart_host(self, host: Host) -> None:
        self._cut_off(host)
        self.at(self.now + BOOT_SECONDS, lambda: self.boot(host))

    def _cut_off(self, host: Host) -> None:
        """Take the power from a host: its tmpfs is gone, its disk stays."""
        self.power_off(host)
        if host.container and host.container.status == "running":
            self._exit(host, 255)
        for file in (host.folder / "run").glob("*"):
            file.unlink()

    def _start_program(self, host: Host) -> None:
        container = host.container
        assert container
        seconds, code = host.trainer.work[min(container.starts, len(host.trainer.work) - 1)]
        container.status, container.checkpointing = "running", False
        container.starts += 1
        container.epoch += 1
        self.note(host, f"program starts, number {container.starts}")
        self._exit_later(host, seconds, code)

    def _exit_later(self, host: Host, seconds: float, code: int) -> None:
        container = host.container
        assert container
        epoch = container.epoch

        def end() -> None:
            if container.epoch == epoch and container.status == "running":
                self._exit(host, code)

        self.at(self.now + seconds, end)

    def _exit(self, host: Host, code: int) -> None:
        container = host.container
        assert container
        container.status, container.code, container.checkpointing = "exited", code, False
        container.epoch += 1
        container.ended_at = self.now
        self.note(host, f"program ends with {code}")
        if code:
            for other in self._stall_others(host):
                self._exit_later(other, other.trainer.peer_delay, 1)

    def _stall_others(self, host: Host) -> list[Host]:
        """Keep the programs of all other hosts from completing, as each step needs all of them."""
        others = [
            other
            for other in self.hosts
            if other is not host
            and other.container
            and other.container.status == "running"
            and not other.container.checkpointing
        ]
        for other in others:
            assert other.container
            other.container.epoch += 1
        return others

    def signal_program(self, host: Host, number: int) -> None:
        """Send a signal to the program, if it runs."""
        container = host.container
        if container is None or container.status != "running":
            return
        self.note(host, f"program receives signal {number}")
        if number == signal.SIGKILL:
            self._exit(host, 137)
        elif host.trainer.checkpoint is not None and not container.checkpointing:
            container.checkpointing = True
            container.epoch += 1
            self._stall_others(host)
            self._exit_later(host, host.trainer.checkpoint, 143)

    def local_answer(self, host: Host, program: str, arguments: list[str]) -> tuple[int, str]:
        """Return the status and the output of a program of the host."""
        programs = {
            "date": self._date,
            "docker": self._docker,
            "systemctl": self._systemctl,
            "systemd-run": self._systemd_run,
            "dpkg": lambda *_: (0, ""),
            "apt-get": lambda *_: (0, ""),
            "journalctl": self._journalctl,
        }
        return programs[program](host, arguments)

    def _date(self, _: Host, __: list[str]) -> tuple[int, str]:
        return 0, f"{EPOCH + int(self.now)}\n"

    def _journalctl(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        assert "--unit=google-startup-scripts.service" in arguments
        return 0, (host.folder / "script.log").read_text(encoding="utf-8")

    def _systemctl(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        if arguments[0] == "start":  # what a test starts in place of systemd
            self.start(host, "watchdog", Path(arguments[1]))
            return 0, ""
        if arguments[0] == "is-active":
            return (0 if "watchdog" in host.actors else 3), ""
        if arguments[0] in ("mask", "enable"):
            host.masked |= {*arguments[2:]} if arguments[0] == "mask" else set()
            return 0, ""
        return (1, "stopping\n") if host.stopping else (0, "running\n")

    def _systemd_run(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        assert arguments[-2] == "bash", arguments
        assert "--property=Restart=always" in arguments
        self.start(host, "watchdog", Path(arguments[-1]))
        return 0, ""

    def _docker(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        if host.docker_dead:
            return 1, "Cannot connect to the Docker daemon. Is the docker daemon running?\n"
        if arguments[0] == "pull" and self.scenario.refused_pull:
            return 1, f"{self.scenario.refused_pull}\n"
        if arguments[0] in ("info", "pull") or (arguments[0] == "logs" and host.container):
            return 0, "step 1\n" if arguments[0] == "logs" else ""
        if arguments[0] == "create":
            host.container = Container("created")
            return 0, "trainer\n"
        if host.container is None:
            return 1, "Error response from daemon: No such container: trainer\n"
        return self._docker_container(host, host.container, arguments)

    def _docker_container(self, host: Host, container: Container, arguments: list[str]) -> tuple[int, str]:
        match arguments:
            case ["container", "inspect", *_]:
                return 0, f"{container.status} {container.code if container.status == 'exited' else 0}\n"
            case ["start", "trainer"]:
                self._start_program(host)
                return 0, "trainer\n"
            case ["kill", *_] if container.status != "running":
                return 1, "Error response from daemon: cannot kill container: trainer is not running\n"
            case ["kill", *options]:
                self.signal_program(host, signal.SIGTERM if "--signal=TERM" in options else signal.SIGKILL)
                return 0, "trainer\n"
        raise AssertionError(arguments)
