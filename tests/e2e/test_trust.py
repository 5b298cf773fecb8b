"""The claims of SECURITY.md about network and subprocesses, checked by the interpreter's audit events."""

import subprocess
import sys
from pathlib import Path

import pytest

from live_answers import install_clients
from process import COMMAND, ENVIRONMENT
from spec_factory import ROOT

pytestmark = pytest.mark.shell

WATCH = """
import os, sys

def _log(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.bind",
                         "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.spawn")):
        with open(os.environ["SEEN"], "a") as seen:
            print(event, *map(repr, arguments), file=seen)

sys.addaudithook(_log)
"""
"""A sitecustomize module, imported by every interpreter, that logs network and subprocess events."""
INSIDE = (
    ("render", "--size", "v3-32"),
    ("check",),
    ("check", "--spec", "examples/mistakes/tpucfg.yaml"),
    ("ladder", "--env", "prod"),
    ("sizes",),
    ("why", "learning_rate", "--env", "prod", "--size", "v3-32"),
    ("explain", "TPU021"),
    ("submit", "--env", "prod", "--size", "v3-32"),
    ("submit", "--env", "prod", "--size", "v3-32", "--target", "cloud-tpu"),
    ("schema",),
    ("status",),
    ("ladder", "--env", "prod", "--format", "svg"),
)


def _events(folder: Path, *command: str) -> str:
    """Return the logged events of a command, one per line."""
    (folder / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    (folder / "seen").touch()
    environment = ENVIRONMENT | {
        "PYTHONPATH": f"{folder}:{ENVIRONMENT['PYTHONPATH']}",
        "SEEN": str(folder / "seen"),
    }
    process = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in process.stderr, process.stderr
    return (folder / "seen").read_text(encoding="utf-8")


def test_events_are_logged(tmp_path: Path) -> None:
    """A program that looks up a host and starts a subprocess is logged, so an empty log is significant."""
    events = _events(
        tmp_path,
        sys.executable,
        "-c",
        "import os, socket; os.system(':'); socket.gethostbyname('localhost')",
    )

    assert "os.system" in events
    assert "socket.gethostbyname" in events


def test_commands_use_no_network_and_no_subprocess(tmp_path: Path) -> None:
    """The commands look up no host, open no connection and start no subprocess."""
    program = f"from tpucfg.cli.app import run\nfor words in {INSIDE!r}: run(words)"
    assert _events(tmp_path, sys.executable, "-c", program) == ""


def test_writing_uses_no_network_and_no_subprocess(tmp_path: Path) -> None:
    """`init` uses neither, nor does `record` in the new project."""
    job = ("--spec", str(tmp_path / "project" / "tpucfg.yaml"), "--env", "dev", "--size", "v2-8")
    assert (
        _events(tmp_path, *COMMAND, "init", str(tmp_path / "project"), "--target", "vertex-ai")
        == ""
    )
    assert _events(tmp_path, *COMMAND, "record", *job, "--metric", "examples_per_second=1") == ""
    assert (tmp_path / "project" / "results" / "dev.jsonl").read_text(encoding="utf-8").count(
        "\n"
    ) == 1


def test_diff_starts_only_git(tmp_path: Path) -> None:
    """`diff` reads the other revision with git, and starts no other program."""
    events = _events(tmp_path, *COMMAND, "diff", "HEAD").splitlines()

    assert events
    assert [line for line in events if not line.startswith("subprocess.Popen 'git'")] == []


def test_live_starts_only_clients(tmp_path: Path) -> None:
    """`status --live` starts gcloud and kubectl, and opens no connection itself."""
    (tmp_path / "bin").mkdir()
    calls = install_clients(tmp_path / "bin", {})
    live = [*COMMAND, "status", "--live", "--env", "dev"]
    events = _events(tmp_path, "env", f"PATH={tmp_path / 'bin'}", *live).splitlines()

    assert [line for line in events if not line.startswith("subprocess.Popen 'gcloud'")] == []
    assert calls.read_text(encoding="utf-8").count("gcloud ai custom-jobs list") == len(events)


def test_infra_uses_no_network(tmp_path: Path) -> None:
    """`infra` runs the stack program, which opens no connection."""
    assert "socket." not in _events(tmp_path, *COMMAND, "infra", "--env", "prod")
