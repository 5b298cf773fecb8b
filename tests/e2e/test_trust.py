"""What SECURITY.md says of the network and of programs, by the interpreter's own audit events."""

import subprocess
import sys
from pathlib import Path

import pytest

from process import COMMAND, ENVIRONMENT
from spec_factory import ROOT

WATCH = """
import os, sys

def _tell(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.bind",
                         "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.spawn")):
        with open(os.environ["SEEN"], "a") as seen:
            print(event, *map(repr, arguments), file=seen)

sys.addaudithook(_tell)
"""
"""Imported at the start of every interpreter that finds it: writes down what leaves the process."""
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
    ("ladder", "--env", "prod", "--format", "html"),
)


def _left(folder: Path, *command: str) -> str:
    """What a command did that others could notice; each line is an event of the interpreter."""
    (folder / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    (folder / "seen").touch()
    environment = ENVIRONMENT | {"PYTHONPATH": f"{folder}:{ENVIRONMENT['PYTHONPATH']}", "SEEN": str(folder / "seen")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return (folder / "seen").read_text(encoding="utf-8")


def test_the_watch_sees(tmp_path: Path) -> None:
    """A program that looks a host up and starts another is seen, so that an empty list means something."""
    seen = _left(tmp_path, sys.executable, "-c", "import os, socket; os.system(':'); socket.gethostbyname('localhost')")

    assert "os.system" in seen
    assert "socket.gethostbyname" in seen


@pytest.mark.parametrize("arguments", INSIDE, ids=" ".join)
def test_no_network_and_no_program(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """The command looks up no host, opens no connection and starts no program."""
    assert _left(tmp_path, *COMMAND, *arguments) == ""


def test_what_is_written_needs_neither(tmp_path: Path) -> None:
    """`init` needs none either, nor does `record` in what it made."""
    job = ("--spec", str(tmp_path / "climb" / "tpucfg.yaml"), "--env", "dev", "--size", "v2-8")
    assert _left(tmp_path, *COMMAND, "init", str(tmp_path / "climb")) == ""
    assert _left(tmp_path, *COMMAND, "record", *job, "--metric", "examples_per_second=1") == ""
    assert (tmp_path / "climb" / "results" / "dev.jsonl").read_text(encoding="utf-8").count("\n") == 1


def test_a_comparison_starts_git_alone(tmp_path: Path) -> None:
    """`diff` asks git for the other side, and starts nothing else."""
    seen = _left(tmp_path, *COMMAND, "diff", "HEAD").splitlines()

    assert seen
    assert [line for line in seen if not line.startswith("subprocess.Popen 'git'")] == []


def test_infrastructure_is_shown_without_a_network(tmp_path: Path) -> None:
    """`infra` runs the project's program, and connects to nothing."""
    assert "socket." not in _left(tmp_path, *COMMAND, "infra", "--env", "prod")
