"""The virtual clock of a simulated slice, and the real processes of the script that live by it.

The clock moves only when every process of the script sleeps, so a loaded machine changes no result, and a minute takes
as long as the calls in it. The programs that the script calls (`PROGRAMS`) are
one client, which sends its name and arguments to the simulation and prints the answer; all others are real.
"""

import heapq
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from slice_scenario import Event, Host, Scenario

CLIENT: Final = r"""
exec 3<>"/dev/tcp/127.0.0.1/$PORT" || exit 99
arguments=()
for argument in "$@"; do
  [[ $argument == @/dev/fd/* ]] && argument=$(<"${argument#@}")
  [[ $argument == @- ]] && argument=$(cat)
  arguments+=("$argument")
done
printf '%s\0' "$HOST" "$ACTOR" "$(($# + 1))" "${0##*/}" "${arguments[@]}" >&3
IFS= read -r -u 3 status || exit 99
IFS= read -r -d '' -u 3 output
[[ $status == 0 || ${0##*/} != docker ]] || exec >&2
printf %s "$output"
exit "$status"
"""
"""Send the name of the program and its arguments, and print the answer, errors of docker to stderr; a header from a
pipe and the standard input are sent as text."""
PROGRAMS: Final = ("docker", "curl", "systemctl", "systemd-run", "date", "sleep", "dpkg", "apt-get", "journalctl")
STALLED_SECONDS: Final = 60
"""Real seconds without any call of a process that does not sleep: the script hangs."""


class Actor:
    """A process of the script on a host: the start-up script itself, or its watchdog."""

    def __init__(self, host: "Host", name: str, process: "subprocess.Popen[bytes]") -> None:
        self.host, self.name, self.process = host, name, process
        self.pidfd = os.pidfd_open(process.pid)
        self.sleep: socket.socket | None = None
        """The connection of its sleep, while it sleeps."""


class Simulation:
    """The clock, the hosts and their processes; a subclass has the answers to what the script calls."""

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
        self.trace: list[str] = []
        self.deleted = False
        self.selector = selectors.DefaultSelector()
        self.server = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.selector.register(self.server, selectors.EVENT_READ, self._accept)

    def answer(self, host: Host, program: str, arguments: list[str]) -> tuple[int, str]:
        """Return the status and the output of a program that the script calls."""
        raise NotImplementedError

    def boot(self, host: Host) -> None:
        """Start a host."""
        raise NotImplementedError

    def happen(self, event: Event) -> None:
        """Let something go wrong."""
        raise NotImplementedError

    def died(self, actor: Actor) -> None:
        """React to the end of a process."""
        raise NotImplementedError

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
                self.at(event.at, lambda event=event: self.happen(event))  # type: ignore[misc]
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
            self.power_off(host)
        for key in list(self.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.selector.close()

    def start(self, host: Host, name: str, file: Path) -> None:
        """Start a process of the script on a host."""
        env = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOST": str(host.number), "ACTOR": name}
        env["PORT"] = str(self.server.getsockname()[1])
        with (host.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(["/bin/bash", file], env=env, stdout=log, stderr=log, start_new_session=True)
        actor = host.actors[name] = Actor(host, name, process)
        self.selector.register(actor.pidfd, selectors.EVENT_READ, lambda: self._died(actor))
        self.note(host, f"{name} starts")

    def _died(self, actor: Actor) -> None:
        status = self._bury(actor)
        self.note(actor.host, f"{actor.name} ends with {status}")
        self.died(actor)

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

    def power_off(self, host: Host) -> None:
        """Kill all processes of a host."""
        host.up = False
        for actor in list(host.actors.values()):
            actor.process.kill()
            self._bury(actor)

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
        status, output = self.answer(host, program, arguments)
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

    def note(self, host: Host, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:8.1f}  host {host.number}  {text}")

    def report(self) -> str:
        """Return everything that happened, and what the script printed."""
        logs = [f"--- {file}\n{file.read_text()[-3000:]}" for host in self.hosts for file in host.folder.glob("*.log")]
        return "\n".join([self.scenario.title, *self.trace, *logs])
