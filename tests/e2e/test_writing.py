"""Files on disk after a kill, on a full or read-only disk, and with concurrent runs; memory and broken outputs."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from process import COMMAND, ENVIRONMENT
from spec_factory import ROOT, spec
from tpucfg.cli.app import COMMANDS

pytestmark = pytest.mark.system

KILLS: Final = 200
MOMENTS: Final = 20
SIZES: Final = ("v2-8", "v2-32", "v2-128", "v2-256", "v2-512")
MEGABYTES: Final = 200
WITH_DEFAULT_SIGINT: Final = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a command with the default action for Ctrl-C, which a process in the background of a shell ignores."""
HAS_NAMESPACES: Final = bool(shutil.which("unshare")) and not subprocess.call(
    ["unshare", "-rm", "true"], stderr=subprocess.DEVNULL
)
IN_A_NAMESPACE: Final = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="the system allows no user namespaces"
)


def many(batch: int, environment_count: int = 40) -> dict[str, Any]:
    """Return a spec with environments of five rungs each: forty make two hundred configs."""
    environment = {"project": "my-project-dev", "region": "us-central1"}
    environments = {
        f"e{number}": {**environment, "bucket": f"my-bucket-{number}"}
        for number in range(environment_count)
    }
    return spec(environments=environments, sizes=list(SIZES), training__batch_size=batch)


def tpucfg(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a folder."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, including hidden ones."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def kill_repeatedly(folder: Path, *commands: list[str], fresh: bool) -> dict[str, int]:
    """Kill the commands at random moments, and return the counts of what was observed."""
    words = [
        sys.executable,
        "-m",
        "crash_runner",
        str(KILLS),
        str(int(fresh)),
        *map(json.dumps, commands),
    ]
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT / 'compiler'}:{ROOT / 'tests'}"}
    result = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    counts: dict[str, int] = json.loads(result.stdout)
    return counts


def test_an_interrupted_render_leaves_no_partial_file(tmp_path: Path) -> None:
    """After Ctrl-C at any moment of writing there is no staged file."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(many(1024)))
    completed = 0
    for moment in range(MOMENTS):
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_DEFAULT_SIGINT, *COMMAND, "render", "--out", "out"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        while process.poll() is None and not (tmp_path / "out").exists():
            time.sleep(0.0002)
        time.sleep(moment * 0.002)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode in (0, 130), errors
        assert b"Traceback" not in errors
        assert all(Path(name).name == "config.yaml" for name in files(tmp_path / "out"))
        completed += process.returncode == 0
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert completed < MOMENTS


@pytest.mark.telling
def test_a_killed_render_leaves_whole_files(tmp_path: Path) -> None:
    """After each of 200 kills every file is the old or the new one, and the next run removes leftovers.

    Catches a file that is written in place, or staged files that the next run leaves.
    """
    for number, batch in enumerate((1024, 2048)):
        # Fifty configs are written in many steps, too, and 200 runs take a quarter of the time.
        (tmp_path / f"{number}.yaml").write_text(json.dumps(many(batch, 10)))
        tpucfg(tmp_path, "render", "--spec", f"{number}.yaml", "--out", f"complete/{number}")
    renders = [["render", "--spec", f"{number}.yaml", "--out", "output"] for number in range(2)]
    counts = kill_repeatedly(tmp_path, *renders, fresh=False)
    # On a busy machine, many kills come before the command writes, or after it.
    assert counts["killed"] >= KILLS // 8, counts
    for number in (0, 1):
        assert tpucfg(tmp_path, *renders[number]).returncode == 0
        left = {path for path in files(tmp_path / "output") if "staged" in path}
        assert files(tmp_path / "output") == files(tmp_path / "complete" / str(number)), left


def test_a_killed_init_leaves_whole_files(tmp_path: Path) -> None:
    """Each file is complete or missing."""
    init = ["init", "--name", "mnist", "--infra"]
    tpucfg(tmp_path, *init, "complete/0")
    counts = kill_repeatedly(tmp_path, [*init, "output"], fresh=True)
    # On a busy machine, many kills come before the command writes, or after it.
    assert counts["killed"] >= KILLS // 8, counts


def test_concurrent_renders_succeed(tmp_path: Path) -> None:
    """Four concurrent renders of two specs into one folder succeed, and each file is that of one of the specs."""
    for number, batch in enumerate((1024, 2048)):
        (tmp_path / f"{number}.yaml").write_text(json.dumps(many(batch)))
        tpucfg(tmp_path, "render", "--spec", f"{number}.yaml", "--out", f"complete/{number}")
    for _ in range(3):
        commands = [
            [*COMMAND, "render", "--spec", f"{number % 2}.yaml", "--out", "output"]
            for number in range(4)
        ]
        started = [
            subprocess.Popen(
                command,
                cwd=tmp_path,
                env=ENVIRONMENT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for command in commands
        ]
        result = [(process.communicate()[1], process.returncode) for process in started]
        assert [status for _, status in result] == [0] * 4, result
        complete = [files(tmp_path / "complete" / str(number)) for number in (0, 1)]
        written = files(tmp_path / "output")
        assert set(written) == set(complete[0])
        assert all(
            content in (complete[0][path], complete[1][path]) for path, content in written.items()
        )
    assert tpucfg(tmp_path, "render", "--spec", "0.yaml", "--out", "output").returncode == 0
    assert files(tmp_path / "output") == files(tmp_path / "complete" / "0")


def mounted(folder: Path, size: str, *lines: str) -> "subprocess.CompletedProcess[str]":
    """Run lines of sh in a namespace where the folder `disk` is a file system of that size."""
    script = "\n".join(
        [
            "set -eu",
            f"mount -t tmpfs -o size={size} tmpfs disk",
            f'tpucfg() {{ {shlex.join(COMMAND)} "$@"; }}',
            "sums() { (cd disk && find . -type f | LC_ALL=C sort | xargs -r sha256sum); }",
            *lines,
        ]
    )
    (folder / "disk").mkdir(exist_ok=True)
    command = ["unshare", "-rm", "sh", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


UNCHANGED: Final = (
    'test "$before" = "$(sums)" || { echo changed; sums; }',
    'echo "status $status"',
)


@IN_A_NAMESPACE
@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        pytest.param(
            "render --spec new.yaml --out disk/output", "disk/output", marks=pytest.mark.telling
        ),
        ("init disk/project --name mnist --infra", "disk/project"),
    ],
)
def test_a_full_disk_changes_no_file(tmp_path: Path, arguments: str, folder: str) -> None:
    """A full disk is one error; existing files stay unchanged, and there is no partial file.

    The first one catches a config that is cut off where the disk was full, with status 0.
    """
    (tmp_path / "old.yaml").write_text(json.dumps(spec()))
    (tmp_path / "new.yaml").write_text(json.dumps(many(2048)))
    result = mounted(
        tmp_path,
        "96k",
        "tpucfg render --spec old.yaml --out disk/output",
        "before=$(sums)",
        f"tpucfg {arguments} >out 2>err && status=0 || status=$?",
        *UNCHANGED,
    )
    assert result.stdout.endswith("status 1\n"), result
    assert "changed" not in result.stdout
    assert (tmp_path / "out").read_text() == ""
    *_, error, hint = (tmp_path / "err").read_text().splitlines()
    assert (error[:8], folder in error, error.rpartition(": ")[2]) == (
        "tpucfg: ",
        True,
        "no space left on device",
    )
    assert hint.startswith("help: check the free space")


@IN_A_NAMESPACE
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("render --spec new.yaml --out disk/output", "read-only file system"),
        ("render --spec new.yaml --out disk/output --prune", "read-only file system"),
        ("render --spec new.yaml --out disk/other", "read-only file system"),
        ("render --spec new.yaml --out disk/output --check", ""),
        ("init disk/project --name mnist", "read-only file system"),
    ],
)
def test_a_read_only_folder_is_an_error(tmp_path: Path, arguments: str, error: str) -> None:
    """Writing to a read-only folder is one error with a help, and --check works."""
    for name, batch in (("old.yaml", 1024), ("new.yaml", 2048)):
        (tmp_path / name).write_text(json.dumps(spec(training__batch_size=batch)))
    result = mounted(
        tmp_path,
        "4m",
        "tpucfg render --spec old.yaml --out disk/output",
        "mount -o remount,ro disk",
        "before=$(sums)",
        f"tpucfg {arguments} >out 2>err && status=0 || status=$?",
        *UNCHANGED,
    )
    assert result.stdout.endswith(f"status {1 if error else 3}\n"), result
    assert "changed" not in result.stdout
    lines = [
        line for line in (tmp_path / "err").read_text().splitlines() if line.startswith("tpucfg: ")
    ]
    assert len(lines) == bool(error)
    assert all(line.endswith(error) for line in lines)
    assert "help: " in (tmp_path / "err").read_text()


RUNS: Final = {
    "render": ("render",),
    "check": ("check",),
    "ladder": ("ladder", "--format", "svg"),
    "sizes": ("sizes",),
    "why": ("why", "batch_size", "--size", "v2-8"),
    "explain": ("explain",),
    "infra": ("infra",),
    "diff": ("diff", "tuned", "other"),
    "review": ("review", "--base", "HEAD"),
    "submit": ("submit",),
    "status": ("status",),
    "init": ("init", "project", "--name", "mnist"),
    "schema": ("schema", "gke"),
    "import": ("import", str(ROOT / "examples" / "import" / "jobset.yaml")),
    "record": ("record", "--size", "v2-8", "--metric", "examples_per_second=1"),
}
"""Arguments of every command that produce output."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a spec and two folders of configs."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tpucfg.yaml").write_text(json.dumps(spec(training__batch_size=1024), indent=1))
    (folder / "other.yaml").write_text(json.dumps(spec(training__batch_size=2048), indent=1))
    for spec_, out in (("tpucfg.yaml", "tuned"), ("other.yaml", "other")):
        tpucfg(folder, "render", "--spec", spec_, "--out", out)
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.telling
def test_every_command_has_arguments() -> None:
    """RUNS has every command but `fit` and `tune`, whose output needs a Python with JAX: tests/fit has it.

    Catches a new command that no test below runs.
    """
    assert set(RUNS) == set(COMMANDS) - {"fit", "tune"}


@pytest.mark.telling
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("name", RUNS)
def test_a_full_output_is_one_error_line(project: Path, name: str) -> None:
    """For every command, an output that cannot be written is one line on stderr and status 1.

    Catches a command that fails as a new process (a missing import), or that loses its output with status 0.
    """
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*COMMAND, *RUNS[name]],
            cwd=project,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "tpucfg: the output: No space left on device"
    assert "Traceback" not in result.stderr


def nested(depth: int) -> str:
    """Return YAML aliases that expand to many values."""
    return "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, depth)
    )


LARGE: Final = {
    "values": f"[{'1,' * 49_000}1]",
    "aliases": nested(4),
    "more aliases": nested(9),
    "keys": json.dumps({f"k{number}": {} for number in range(24_000)}),
    "keys twice": "a: 1\n" * 200_000,
    "one text": json.dumps(spec(trainer__args={"a": "x" * 1_000_000})),
    "extra": json.dumps(spec(targets={"vertex-ai": {"extra": {"a": ["x" * 15] * 45_000}}})),
    "configs": json.dumps(many(1024)),
    "one line": "a: " + "x" * 10_000_000,
    "brackets": "[" * 1_000_000,
}
"""Specs at the limits of a file, and beyond."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.telling if name == "more aliases" else ())
        for name in LARGE
    ],
)
def test_no_command_needs_much_memory(tmp_path: Path, name: str) -> None:
    """No command that reads a large spec uses more than 200 MB.

    The telling one catches aliases that are expanded before they are counted: a gigabyte of values.
    """
    (tmp_path / "tpucfg.yaml").write_text(LARGE[name])
    commands = [
        ("check", "--config", "tpucfg.yaml", "--target", "gke"),
        ("check", "--format", "sarif"),
        ("render",),
    ]
    if name == "configs":
        commands += [
            RUNS[command]
            for command in ("check", "ladder", "why", "submit", "status", "infra", "record")
        ]
        commands += [("render", "--out", "output"), ("check", "--stack-outputs", "tpucfg.yaml")]
    for words in commands:
        status, peak = measured(tmp_path, *words)
        assert status in (0, 1, 2), words
        assert peak < MEGABYTES, words


_MEASURE: Final = """
import os, resource, subprocess, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss)
"""
"""A small program that starts the command: on Linux, a child's peak memory includes that of its parent at the start."""


def measured(folder: Path, *words: str) -> tuple[int, float]:
    """Return the status and the peak memory in megabytes of a command with a memory limit."""
    command = [sys.executable, "-c", _MEASURE, str(MEGABYTES << 20), *COMMAND, *words]
    result = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, text=True
    )
    status, peak = map(int, result.stdout.split())
    return status, peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
