"""The hosts of a slice, on which the real start-up script of cloud-tpu runs in bash while time is simulated.

Docker, systemd, the metadata server, Cloud Storage and the Cloud TPU API are stand-ins in this module. The programs that
the script calls (docker, curl, systemctl, systemd-run, date, sleep) are one small client of it, and all others are real.

The clock is virtual: it moves only when every process of the script sleeps, so a loaded machine changes no result, and a
minute takes as long as the calls in it. The stand-ins behave as documented:

- systemd restarts a unit with Restart=always 5 seconds after its process has died, however that happened, and kills the
  rest of its group (systemd.service(5), systemd.kill(5)); `systemctl is-system-running` prints `stopping` while the host
  shuts down (systemctl(1)).
- dockerd sends SIGTERM to its containers when the host shuts down, waits for their stop timeout, and marks a container as
  exited with status 255 if the host went down without it (github.com/moby/moby, daemon/daemon.go).
- A file of Cloud Storage appears at once when its upload is complete (cloud.google.com/storage/docs/consistency).
- DELETE of a queued resource stops its hosts (cloud.google.com/tpu/docs/queued-resources).
"""

import heapq
import json
import math
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

CLIENT: Final = r"""
exec 3<>"/dev/tcp/127.0.0.1/$PORT" || exit 99
arguments=()
for argument in "$@"; do
  [[ $argument == @/dev/fd/* ]] && argument=$(<"${argument#@}")
  arguments+=("$argument")
done
printf '%s\0' "$HOST" "$ACTOR" "$(($# + 1))" "${0##*/}" "${arguments[@]}" >&3
IFS= read -r -u 3 status || exit 99
IFS= read -r -d '' -u 3 output
printf %s "$output"
exit "$status"
"""
"""Send the name of the program and its arguments, and print the answer; a header from a pipe is sent as text."""
PROGRAMS: Final = ("docker", "curl", "systemctl", "systemd-run", "date", "sleep")
EPOCH: Final = 1_800_000_000
RESTART_SECONDS: Final = 5
"""RestartSec of the unit."""
BOOT_SECONDS: Final = 40
STALLED_SECONDS: Final = 60
"""Real seconds without any call of a process that does not sleep: the script hangs."""


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
    hosts_per_slice: int = 0
    """0 if there is only one slice."""
    limit: float = 3000


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


class Actor:
    """A process of the script on a host: the start-up script itself, or its watchdog."""

    def __init__(self, host: "Host", name: str, process: "subprocess.Popen[bytes]") -> None:
        self.host, self.name, self.process = host, name, process
        self.pidfd = os.pidfd_open(process.pid)
        self.sleep: socket.socket | None = None
        """The connection of its sleep, while it sleeps."""


class Host:
    """A machine with its disk (lib), its tmpfs (run), and at most one container."""

    def __init__(self, number: int, folder: Path, trainer: Trainer) -> None:
        self.number, self.folder, self.trainer = number, folder, trainer
        self.up = self.stopping = self.lost = False
        self.booted_at = 0.0
        self.container: Container | None = None
        self.actors: dict[str, Actor] = {}
        self.calls: dict[str, int] = {"script": 0, "watchdog": 0}
        self.script_ended_at = 0.0

    @property
    def deadline(self) -> float:
        """The deadline in the host's own file, in seconds of the run; infinity if the script died before it."""
        file = self.folder / "lib/deadline"
        return float(file.read_text()) - EPOCH if file.exists() else math.inf

    @property
    def over_at(self) -> float:
        """The time at which its program has ended, or could not be started."""
        return max(self.container.ended_at, self.booted_at) if self.container else self.script_ended_at

    @property
    def ended(self) -> tuple[float, str] | None:
        """The time at which the watchdog noted the end of the program, and its status."""
        file = self.folder / "lib/ended"
        if not file.exists():
            return None
        at, status = file.read_text().split()
        return float(at) - EPOCH, status


class World:
    """All hosts of a run and the services that they call."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.scenario, self.now, self.order = scenario, 0.0, 0
        self.programs = folder / "programs"
        self.programs.mkdir(parents=True)
        for name in PROGRAMS:
            program = self.programs / name
            program.write_text(f"#!/bin/bash\n{CLIENT}", encoding="utf-8")
            program.chmod(0o755)
        self.hosts = [Host(number, folder / str(number), trainer) for number, trainer in enumerate(scenario.trainers)]
        self.planned: list[tuple[float, int, Callable[[], None]]] = []
        self.objects: dict[str, str] = {}
        self.calls: list[Call] = []
        self.trace: list[str] = []
        self.deleted = False
        self.selector = selectors.DefaultSelector()
        self.server = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.selector.register(self.server, selectors.EVENT_READ, self._accept)

    # The clock.

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Plan an action."""
        self.order += 1
        heapq.heappush(self.planned, (time, self.order, action))

    def run(self) -> None:
        """Run until the slice is deleted, or until the limit."""
        for host, time in zip(self.hosts, self.scenario.boots, strict=True):
            self.at(time, lambda host=host: self.boot(host))  # type: ignore[misc]
        for event in self.scenario.events:
            if not event.kind.startswith("calls-"):
                self.at(event.at, lambda event=event: self._happen(event))  # type: ignore[misc]
        try:
            while not self.deleted and self.now < self.scenario.limit:
                if any(actor.sleep is None for host in self.hosts for actor in host.actors.values()):
                    self._serve()
                elif self.planned:
                    self.now, _, action = heapq.heappop(self.planned)
                    action()
                else:
                    break
        finally:
            self._close()

    def _serve(self) -> None:
        ready = self.selector.select(STALLED_SECONDS)
        if not ready:
            awake = [f"{h.number}/{a.name}" for h in self.hosts for a in h.actors.values() if a.sleep is None]
            raise AssertionError(f"hanging: {awake} at {self.now}\n{self.report()}")
        for key, _ in ready:
            with suppress(KeyError):  # it was removed by an earlier one
                self.selector.get_key(key.fileobj)
                key.data()

    def _close(self) -> None:
        for host in self.hosts:
            self._power_off(host)
        for key in list(self.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.selector.close()

    # Processes.

    def boot(self, host: Host) -> None:
        """Start a host: the guest agent runs the start-up script."""
        host.up, host.stopping, host.booted_at = True, False, self.now
        for name in ("lib", "run"):
            (host.folder / name).mkdir(parents=True, exist_ok=True)
        script = host.folder / "startup-script"
        text = self.scenario.script.replace("/var/lib/tpucfg", str(host.folder / "lib"))
        script.write_text(text.replace("/run/tpucfg", str(host.folder / "run")), encoding="utf-8")
        self._start(host, "script", script)

    def _start(self, host: Host, name: str, file: Path) -> None:
        env = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOST": str(host.number), "ACTOR": name}
        env["PORT"] = str(self.server.getsockname()[1])
        with (host.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(["/bin/bash", file], env=env, stdout=log, stderr=log, start_new_session=True)
        actor = host.actors[name] = Actor(host, name, process)
        self.selector.register(actor.pidfd, selectors.EVENT_READ, lambda: self._died(actor))
        self.note(host, f"{name} starts")

    def _died(self, actor: Actor) -> None:
        status = self._bury(actor)
        host = actor.host
        self.note(host, f"{actor.name} ends with {status}")
        if actor.name == "script":
            host.script_ended_at = self.now
        elif host.up and not host.stopping:
            self.at(self.now + RESTART_SECONDS, lambda: self._restart_unit(host))

    def _restart_unit(self, host: Host) -> None:
        if host.up and not host.stopping and "watchdog" not in host.actors:
            self._start(host, "watchdog", host.folder / "run/watchdog")

    def _bury(self, actor: Actor) -> int:
        """Wait for a dead process, kill the rest of its group, and forget it."""
        self.selector.unregister(actor.pidfd)
        os.close(actor.pidfd)
        with suppress(ProcessLookupError):
            os.killpg(actor.process.pid, signal.SIGKILL)
        status = actor.process.wait()
        if actor.sleep:
            actor.sleep.close()
        del actor.host.actors[actor.name]
        return status

    def kill(self, host: Host, name: str, number: int) -> None:
        """Send a signal to a process of the script, if it runs."""
        if actor := host.actors.get(name):
            self.note(host, f"{name} receives signal {number}")
            actor.process.send_signal(number)
            if actor.sleep:
                # bash runs its EXIT trap when the program that it waits for has returned.
                actor.sleep.close()
                actor.sleep = None

    def _power_off(self, host: Host) -> None:
        host.up = False
        for actor in list(host.actors.values()):
            actor.process.kill()
            self._bury(actor)

    # What goes wrong.

    def _happen(self, event: Event) -> None:
        host = self.hosts[event.host]
        if not host.up:
            return
        self.note(host, f"{event.kind} {event.signal}")
        if event.kind == "trainer":
            self.signal_program(host, event.signal)
        elif event.kind == "lost":
            host.lost = True
            self._cut_off(host)
        elif event.kind == "reset":
            self._cut_off(host)
            self.at(self.now + BOOT_SECONDS, lambda: self.boot(host))
        elif event.kind == "reboot":
            self._shut_down(host, event)
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
        self.at(self.now + min(patience, 90), lambda: self._restart_host(host))

    def _restart_host(self, host: Host) -> None:
        self._cut_off(host)
        self.at(self.now + BOOT_SECONDS, lambda: self.boot(host))

    def _cut_off(self, host: Host) -> None:
        """Take the power from a host: its tmpfs is gone, its disk stays."""
        self._power_off(host)
        if host.container and host.container.status == "running":
            self._exit(host, 255)
        for file in (host.folder / "run").glob("*"):
            file.unlink()

    # The program.

    def _start_program(self, host: Host) -> None:
        container = host.container = host.container or Container()
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

    # The programs that the script calls.

    def _accept(self) -> None:
        connection, _ = self.server.accept()
        parts: list[bytes] = []

        def read() -> None:
            data = connection.recv(1 << 16)
            parts.append(data)
            words = b"".join(parts).split(b"\0")
            if not data:
                self.selector.unregister(connection)
                connection.close()
            elif len(words) > 3 and len(words) == int(words[2]) + 4:
                self.selector.unregister(connection)
                self._answer(connection, [word.decode() for word in words[:-1]])

        self.selector.register(connection, selectors.EVENT_READ, read)

    def _answer(self, connection: socket.socket, words: list[str]) -> None:
        host, name = self.hosts[int(words[0])], words[1]
        _, program, *arguments = words[2:]
        host.calls[name] += 1
        actor = host.actors.get(name)
        kills = [
            event
            for event in self.scenario.events
            if event.kind == f"calls-{name}" and (event.host, event.at) == (host.number, host.calls[name])
        ]
        # It is killed before the call, or between the call and its answer.
        if kills and kills[0].seconds == 0:
            self.kill(host, name, kills[0].signal)
            connection.close()
            return
        if program == "sleep":
            if actor is None or actor.process.poll() is not None:
                connection.close()
                return
            actor.sleep = connection
            self.at(self.now + float(arguments[0]), lambda: self._wake(actor, connection))
            return
        status, output = getattr(self, f"_{program.replace('-', '_')}")(host, arguments)
        if kills:
            self.kill(host, name, kills[0].signal)
        self._send(connection, status, output)

    def _wake(self, actor: Actor, connection: socket.socket) -> None:
        if actor.sleep is connection:
            actor.sleep = None
            self._send(connection, 0, "")

    @staticmethod
    def _send(connection: socket.socket, status: int, output: str) -> None:
        with suppress(OSError):
            connection.sendall(f"{status}\n{output}".encode())
        connection.close()

    def _date(self, _: Host, __: list[str]) -> tuple[int, str]:
        return 0, f"{EPOCH + int(self.now)}\n"

    def _systemctl(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        if arguments[0] == "start":  # what a test starts in place of systemd
            self._start(host, "watchdog", Path(arguments[1]))
            return 0, ""
        if arguments[0] == "is-active":
            return (0 if "watchdog" in host.actors else 3), ""
        return (1, "stopping\n") if host.stopping else (0, "running\n")

    def _systemd_run(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        assert arguments[-2] == "bash", arguments
        assert "--property=Restart=always" in arguments
        self._start(host, "watchdog", Path(arguments[-1]))
        return 0, ""

    def _docker(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        container = host.container
        match arguments:
            case ["pull" | "logs", *_]:
                return 0, ""
            case ["container", "inspect", *_] if container is None:
                return 1, "Error response from daemon: No such container: trainer\n"
            case ["container", "inspect", *_]:
                assert container
                return 0, f"{container.status} {container.code if container.status == 'exited' else 0}\n"
            case ["run", *_] | ["start", "trainer"]:
                self._start_program(host)
                return 0, "trainer\n"
            case ["kill", *_] if container is None or container.status != "running":
                return 1, "Error response from daemon: cannot kill container: trainer is not running\n"
            case ["kill", *options]:
                self.signal_program(host, signal.SIGTERM if "--signal=TERM" in options else signal.SIGKILL)
                return 0, "trainer\n"
        raise AssertionError(arguments)

    # The services.

    def _curl(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        url = urlsplit(arguments[-1])
        options = dict(pairwise(arguments))
        if url.hostname == "metadata.google.internal":
            return self._metadata(host, url.path)
        assert "Authorization: Bearer token" in arguments, arguments
        method = options["--request"]
        if url.hostname == "tpu.googleapis.com":
            assert (method, url.query) == ("DELETE", "force=true")
            status, body = self._delete(host), "{}"
        else:
            status, body = self._storage(method, url.path, parse_qs(url.query), options.get("--data-binary", ""))
        return (0, f"{body}\n{status}\n") if status else (28, "\n000\n")

    def _metadata(self, host: Host, path: str) -> tuple[int, str]:
        per_slice = self.scenario.hosts_per_slice or len(self.hosts)
        values = {
            "service-accounts/default/token": '{"access_token":"token","expires_in":3599,"token_type":"Bearer"}',
            "attributes/agent-worker-number": str(host.number % per_slice),
            "attributes/tpu-env": f"ACCELERATOR_TYPE: 'v4-16'\nMEGASCALE_SLICE_ID: '{host.number // per_slice}'\n",
            "id": str(1000 + host.number),
        }
        return 0, values[path.removeprefix("/computeMetadata/v1/instance/")]

    def _storage(self, method: str, path: str, query: dict[str, list[str]], data: str) -> tuple[int, str]:
        if self.scenario.broken_bucket:
            return 403, '{"error": {"code": 403}}'
        if method == "POST":
            self.objects[query["name"][0]] = data
            return 200, "{}"
        if "prefix" in query:
            names = sorted(name for name in self.objects if name.startswith(query["prefix"][0]))
            return 200, json.dumps({"items": [{"name": name} for name in names]} if names else {}, indent=1)
        name = unquote(path.rpartition("/o/")[2])
        return (200, self.objects[name]) if name in self.objects else (404, "No such object")

    def _delete(self, host: Host) -> int:
        number = len(self.calls)
        answers = self.scenario.answers
        status = answers[number] if number < len(answers) else 200
        self.calls.append(Call(self.now, host.number, status, list(self._problems(host))))
        self.note(host, f"DELETE: {status}")
        self.deleted = status in (200, 404)
        return status

    # What must be true.

    def _problems(self, caller: Host) -> Iterator[str]:
        """Yield the reasons why a host must not delete the slice now."""
        for host in self.hosts:
            if host.container and host.container.checkpointing:
                yield f"host {host.number} writes a checkpoint"
        if self.now >= caller.deadline or all(self._is_over(host) for host in self.hosts):
            return
        if not self._is_over(caller):
            yield f"the program of host {caller.number} has not ended"
        elif caller.number and caller.ended and caller.ended[1] == "0":
            yield f"host {caller.number} has not failed, and is not the first"
        elif self.now < caller.over_at + 60 - 1:  # the script counts whole seconds
            yield "the grace is not over"

    def _is_over(self, host: Host) -> bool:
        return host.lost or (host.ended is not None and (host.container is None or host.container.status == "exited"))

    def note(self, host: Host, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:8.1f}  host {host.number}  {text}")

    def report(self) -> str:
        """Return everything that happened, and what the script printed."""
        logs = [f"--- {file}\n{file.read_text()[-3000:]}" for host in self.hosts for file in host.folder.glob("*.log")]
        return "\n".join([*self.trace, *logs])
