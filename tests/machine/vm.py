"""A machine: real systemd and docker in a container of systemd-nspawn, in a network that nothing leaves.

Its disk is a layer above the tree, in memory; a reboot keeps it. Its uptime starts at 0, by a time namespace.
"""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final, Self

import services
from services import Cloud

STATIC: Final = Path(__file__).resolve().parent / "tree"
"""Files of every machine: the unit of the guest agent, and clients with faults."""
CAPACITY: Final = "300m"
"""The size of a disk."""
REBOOTED: Final = 133
"""The status of systemd-nspawn when the machine asked for a reboot."""


class Machine:
    """A host of a slice with its services; a context manager that leaves nothing behind."""

    def __init__(
        self, name: str, folder: Path, cloud: Cloud, worker: int, *, is_ext4: bool
    ) -> None:
        # The name is that of the host too, and a program reads its worker's number from the end.
        self.name, self.folder, self.cloud, self.worker, self.is_ext4 = (
            f"{name}-{worker}",
            folder,
            cloud,
            worker,
            is_ext4,
        )
        self.root, self.faults, self.docker = folder / "root", folder / "faults", folder / "docker"
        self.process: subprocess.Popen[bytes] | None = None
        self.is_read_only = False
        self.first_boot = self.booted_at = 0.0

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        self._mount_disk()
        for path in (self.root, self.faults, self.docker, self.folder / "up", self.folder / "work"):
            path.mkdir()
        lower = f"{STATIC}:{self.cloud.tree / 'root'}"
        layers = f"lowerdir={lower},upperdir={self.folder / 'up'},workdir={self.folder / 'work'}"
        _run("mount", "-t", "overlay", "-o", layers, "machine", str(self.root))
        for mounted in ("faults", "var/lib/docker"):
            (self.root / mounted).mkdir(parents=True, exist_ok=True)
        (self.root / "etc/hostname").write_text(self.name, encoding="utf-8")
        # libfaketime reads the clock of the test here: bash has a getenv of its own, which hides variables from it.
        (self.root / "etc/faketimerc").symlink_to("/faults/clock")
        _run("ip", "netns", "add", self.name)
        _run("ip", "-n", self.name, "link", "set", "lo", "up")
        for address, _ in (services.METADATA, services.APIS):
            _run("ip", "-n", self.name, "address", "add", f"{address}/32", "dev", "lo")
        self.servers = services.serve(self.name, self.cloud, self.worker)
        return self

    def _mount_disk(self) -> None:
        """Mount a disk in memory, or one on which an error of the file system can be caused."""
        if not self.is_ext4:
            _run("mount", "-t", "tmpfs", "-o", f"size={CAPACITY}", "machine", str(self.folder))
            return
        image = self.folder.with_suffix(".img")
        _run("truncate", f"--size={CAPACITY}", str(image))
        _run("mkfs.ext4", "-q", str(image))
        _run("mount", "-o", "loop,errors=remount-ro", str(image), str(self.folder))

    def __exit__(self, *_: object) -> None:
        self.cloud.closed.set()
        if self.is_ext4:
            # No process that writes to the disk can end before.
            subprocess.run(
                ["fsfreeze", "--unfreeze", str(self.folder)], check=False, capture_output=True
            )
        self.cut_power()
        for server in self.servers:
            server.shutdown()
            server.server_close()
        _run("ip", "netns", "delete", self.name)
        for path in (self.root, self.folder):
            _run("umount", "--lazy", str(path))

    def boot(self) -> None:
        """Start systemd."""
        uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
        namespace = [
            "unshare",
            "--fork",
            "--time",
            "--boottime",
            str(-uptime),
            "--monotonic",
            str(-uptime),
        ]
        options = [
            *(
                "--quiet",
                "--boot",
                "--register=no",
                "--keep-unit",
                "--console=pipe",
                "--resolv-conf=off",
            ),
            *("--timezone=off", "--capability=all", "--system-call-filter=@keyring bpf"),
            *(
                f"--machine={self.name}",
                f"--directory={self.root}",
                f"--network-namespace-path=/run/netns/{self.name}",
            ),
            *(f"--bind={self.docker}:/var/lib/docker", f"--bind-ro={self.faults}:/faults"),
            *(["--read-only"] if self.is_read_only else []),
        ]
        # cgroups of version 2, as on Ubuntu 22.04 and later.
        variables = os.environ | {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        with (self.folder / "console").open("ab") as console:
            self.process = subprocess.Popen(
                [*namespace, "systemd-nspawn", *options],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=variables,
                start_new_session=True,
            )
        self.booted_at = time.monotonic()
        self.first_boot = self.first_boot or self.booted_at

    def reboot(self, *, delivers: bool = True) -> None:
        """Reboot as `systemctl reboot` does, and wait until the next boot has begun."""
        assert self.process
        self.run("/usr/bin/systemctl", "--no-block", "reboot")
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.cut_power()
        self._boot_again(delivers)

    def reset(self, *, delivers: bool = True) -> None:
        """Take the power for a moment."""
        self.cut_power()
        self._boot_again(delivers)

    def _boot_again(self, delivers: bool) -> None:
        if not delivers:
            self.cloud.without_script.add(self.worker)
        self.boot()

    def cut_power(self) -> None:
        """Kill all processes of the machine."""
        if self.process:
            # The machine outlives systemd-nspawn, but not the first process of its own.
            for kill, pid in ((os.kill, self._leader()), (os.killpg, self.process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)
            self.process.wait()

    def cut_network(self, *, is_up: bool = False) -> None:
        """Take the network away, or bring it back."""
        _run("ip", "-n", self.name, "link", "set", "lo", "up" if is_up else "down")

    def hang(self) -> None:
        """Stop systemd, as a signal from outside can: it neither answers nor starts a unit again."""
        os.kill(self._leader(), signal.SIGSTOP)

    def fail_disk(self) -> None:
        """Cause an error of the file system, after which the kernel writes nothing more to it."""
        device = subprocess.check_output(
            ["findmnt", "--noheadings", "--output=SOURCE", str(self.folder)], text=True
        )
        Path("/sys/fs/ext4", Path(device.strip()).name, "trigger_fs_error").write_text(
            "1", encoding="utf-8"
        )

    def hang_disk(self) -> None:
        """Let each write to the disk wait for ever, which no signal ends."""
        _run("fsfreeze", "--freeze", str(self.folder))

    def fault(self, program: str, text: str) -> None:
        """Let a program of the machine (`docker`, `gcsfuse`) do something else first; empty text ends that."""
        new = self.faults / f"{program}.new"
        new.write_text(text, encoding="utf-8")
        new.replace(self.faults / program)

    def fill(self) -> None:
        """Fill the disk to the last byte."""
        with contextlib.suppress(OSError), (self.root / "full").open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        with contextlib.suppress(OSError), (self.root / "rest").open("wb") as file:
            while True:
                file.write(b"0")
                file.flush()

    def run(self, *command: str) -> str:
        """Run a command in the machine, and return its output."""
        leader = self._leader()
        enter = [
            "nsenter",
            f"--target={leader}",
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--cgroup",
            "--",
        ]
        completed = subprocess.run(
            [*enter, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
        return completed.stdout.decode(errors="replace")

    def _leader(self) -> int:
        """Return the process of systemd: a grandchild of `unshare`."""
        assert self.process
        pid = self.process.pid
        for _ in range(2):
            with contextlib.suppress(OSError, IndexError):
                pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[-1])
        return pid

    def report(self) -> str:
        """Return what the machine and its services saw."""
        requests = [
            f"{r.at - self.booted_at:7.1f}  {r.method} {r.host}{r.path} {r.status}"
            for r in self.cloud.requests
            if r.worker == self.worker
        ]
        try:
            journal = self.run("journalctl", "--no-pager", "--output=short-monotonic")
        except (OSError, subprocess.SubprocessError) as error:
            journal = f"no journal: {error}"
        return "\n".join(
            [
                *requests,
                journal[-20000:],
                (self.folder / "console").read_text(errors="replace")[-2000:],
            ]
        )


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
