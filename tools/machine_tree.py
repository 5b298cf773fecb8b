"""Make the tree that the machines of tests/machine boot: Debian with systemd and docker, by mmdebstrap.

Prints its folder, which is kept in the cache under a key of what it is made of; making it takes up to a minute.
Packages come from the sources of apt on this machine, which has to be a Debian of the same release. Messages go to
stderr.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tool_cache import PROGRESS_SECONDS, cache_folder, locked, log

RELEASE: Final = "bookworm"
PACKAGES: Final = (
    *(
        "systemd",
        "systemd-sysv",
        "curl",
        "ca-certificates",
        "openssl",
        "docker.io",
        "busybox-static",
    ),
    "libfaketime",
)
FAKETIME: Final = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
"""The library that turns the clock of a process; docker's image of the tests has that architecture too."""
PROGRAMS: Final = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "unshare": "util-linux",
}
"""The programs that make and boot a machine, and the Debian packages that have them."""
HOSTS: Final = (
    *("cloudresourcemanager", "compute", "secretmanager", "storage", "tpu"),
    "us-docker.pkg.dev",
)
"""The services that have a stand-in: names below googleapis.com, and whole names."""
MASKED: Final = (
    "console-getty.service",
    "e2scrub_reap.service",
    "fstrim.timer",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-logind.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
)
"""Units of Debian that a machine of a test does not need. An sdist has no links to /dev/null: they are made here."""


class TreeError(Exception):
    """There is no tree; the message names the fix."""


def missing() -> str:
    """Return why no machine can boot here, with the fix; empty if one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "machines boot as root on Linux only"
    if RELEASE not in platform.freedesktop_os_release().get("VERSION_CODENAME", ""):
        return f"the tree of a machine is made from apt's own sources, which are not of Debian {RELEASE} here"
    if lacking := [
        package for program, package in PROGRAMS.items() if shutil.which(program) is None
    ]:
        return f"programs are missing: apt-get install {' '.join(lacking)}"
    if subprocess.run(["unshare", "--time", "true"], capture_output=True, check=False).returncode:
        return "this kernel has no time namespaces, by which each machine has an uptime of its own"
    return ""


def folder() -> Path:
    """Return the folder of the tree and its certificate, which may not exist."""
    key = hashlib.sha256(" ".join((RELEASE, *PACKAGES, *HOSTS, *MASKED)).encode()).hexdigest()[:12]
    return cache_folder().resolve() / f"machine-{key}"


def make() -> Path:
    """Return the folder, after making it if it does not exist.

    Raises:
        TreeError: A machine cannot boot here, or mmdebstrap failed.
    """
    if reason := missing():
        raise TreeError(reason)
    done = folder()
    if done.is_dir():
        return done
    done.parent.mkdir(parents=True, exist_ok=True)
    with locked(done.parent / ".machine.lock"):
        return done if done.is_dir() else _make(done)


def _make(done: Path) -> Path:
    unfinished = done.with_name(f"{done.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        _debian(unfinished)
        for unit in MASKED:
            (unfinished / "root/etc/systemd/system" / unit).symlink_to("/dev/null")
        _certificate(unfinished)
        # Renamed at the end, so that an interrupted build is never booted.
        unfinished.rename(done)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return done


def _debian(target: Path) -> None:
    """Install the packages; apt's own sources are copied, as mmdebstrap's default is the main archive."""
    log(f"making Debian {RELEASE} in {target} (up to a minute, once)")
    sources = [
        *Path("/etc/apt").glob("sources.list.d/debian.sources"),
        *Path("/etc/apt").glob("sources.list"),
    ]
    command = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        RELEASE,
        str(target / "root"),
    ]
    output_file = target / "build.log"
    with output_file.open("w") as output:
        process = subprocess.Popen([*command, *map(str, sources[:1])], stdout=output, stderr=output)
        started = time.monotonic()
        while True:
            try:
                process.wait(PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                last = output_file.read_text().splitlines()[-1:] or ["starting"]
                log(f"{time.monotonic() - started:6.0f} s, {last[0][:100]}")
    if process.returncode:
        raise TreeError(
            "mmdebstrap failed; the end of its output:\n"
            + "\n".join(output_file.read_text().splitlines()[-15:])
        )


def _certificate(target: Path) -> None:
    """Make the certificate of the stand-ins, which the tree trusts, and no other machine.

    It is two days old, because tests set clocks back.
    """
    root = target / "root"
    names = [host if "." in host else f"{host}.googleapis.com" for host in HOSTS]
    days_ago = ["env", f"LD_PRELOAD={FAKETIME}", "FAKETIME=-2d"]
    files = ["-keyout", "/key.pem", "-out", "/certificate.pem", "-days", "3650"]
    subject = [
        "-subj",
        "/CN=stand-ins for tests",
        "-addext",
        f"subjectAltName={','.join(f'DNS:{n}' for n in names)}",
    ]
    _run(
        [
            "chroot",
            str(root),
            *days_ago,
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            *files,
            *subject,
        ]
    )
    for name in ("key.pem", "certificate.pem"):
        (root / name).rename(target / name)
    trusted = root / "usr/local/share/ca-certificates/stand-ins.crt"
    trusted.write_bytes((target / "certificate.pem").read_bytes())
    _run(["chroot", str(root), "update-ca-certificates"])


def _run(command: list[str]) -> None:
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise TreeError(f"{command[0]} failed: {completed.stderr.strip()}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--missing"]:
        print(missing())
        sys.exit(bool(missing()))
    try:
        print(make())
    except TreeError as error:
        sys.exit(f"tools/machine_tree.py: {error}")
