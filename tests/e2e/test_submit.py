"""The command that `submit` prints, run by a real bash, and `--execute`, with stubs that log their arguments."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from jobs import program
from process import ENVIRONMENT, run_here
from spec_factory import spec

pytestmark = pytest.mark.shell

HOSTILE: Final = (
    *(
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        "| touch pwned",
        "&& touch pwned",
        "> pwned",
        "$HOME",
        "~",
    ),
    *(
        "'; touch pwned; '",
        '"; touch pwned; "',
        "\\",
        "*",
        "{{7*7}}",
        "%s%n",
        "-rf",
        "--config=/etc/passwd",
        "a b",
        "é",
    ),
    *("!!python/object/apply:os.system", "<(touch pwned)", "$'\\x41'", "#", "=", "x\ttouch"),
)
NOTES: Final = (
    'printf "%s\\0" "$@" > "$NOTES/$(basename "$0").argv"; cat > "$NOTES/$(basename "$0").stdin"'
)
SIZES: Final = {
    "vertex-ai": "v3-8",
    "cloud-tpu": "v3-8",
    "gke": "v5litepod-4",
    "ai-platform": "v3-8",
}
"""The targets whose jobs are started by one command; tests/targets/test_creations.py is about the others."""
REGIONS: Final = {"gke": "us-central1"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return a folder for the arguments and the input of stub programs gcloud, kubectl and curl on the PATH."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("kubectl", "curl"):
        program(tmp_path / "bin", name, NOTES)
    program(
        tmp_path / "bin",
        "gcloud",
        f'[ "$*" = "auth print-access-token" ] && echo token && exit; {NOTES}',
    )
    program(tmp_path / "bin", "tpucfg", f'exec {shlex.quote(sys.executable)} -m tpucfg "$@"')
    return folder


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a program with the stub programs on its PATH."""
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


def submit(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run `tpucfg submit` with the stub programs on its PATH."""
    return run_here(folder, "submit", *options, env=environment(folder))


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a command that finds the stub programs."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**ENVIRONMENT, "PATH": path, "NOTES": str(folder / "notes")}


def hostile_spec(target: str) -> dict[str, Any]:
    """Return a spec with hostile texts wherever the target accepts any text."""
    runtime = {"runtime": "2.2"} if target == "ai-platform" else {}
    env = (
        {}
        if target == "ai-platform"
        else {"env": {f"E{number}": text for number, text in enumerate(HOSTILE)}}
    )
    return spec(
        target=target,
        sizes=[SIZES[target]],
        environments__dev={
            "project": "my-project-dev",
            "region": REGIONS.get(target, "europe-west4"),
            **({"kube_context": "arn:aws/x@y_z"} if target == "gke" else {}),
        },
        trainer={
            "image": "r.io/i:1",
            "args": {f"a{number}": text for number, text in enumerate(HOSTILE)},
            **runtime,
            **env,
        },
        training={"tuned_on": SIZES[target], "batch_size": 1024, "train_steps": 4000},
    )


def recorded_call(notes: Path) -> tuple[str, list[str], str]:
    """Return the started program, its arguments and its input."""
    (argv,) = notes.glob("*.argv")
    words = argv.read_bytes().decode().split("\0")[:-1]
    return argv.stem, words, (notes / f"{argv.stem}.stdin").read_text()


@pytest.mark.parametrize("target", SIZES)
@pytest.mark.parametrize("name", ["tpucfg.yaml", "it's $(touch pwned).yaml", "-rf.yaml"])
def test_the_pasted_command_equals_execute(
    tmp_path: Path, notes: Path, target: str, name: str
) -> None:
    """With hostile values and file names, bash passes on each argument unchanged, and starts no other program."""
    (tmp_path / name).write_text(json.dumps(hostile_spec(target)))
    chosen = () if name == "tpucfg.yaml" else ("--spec", name)
    printed = submit(tmp_path, "--run", "a1", *chosen)
    assert printed.returncode == 0, printed.stderr
    pasted = run(tmp_path, "bash", "-euo", "pipefail", "-c", printed.stdout)
    assert pasted.returncode == 0, pasted.stderr
    pasted_call = recorded_call(notes)
    assert not (tmp_path / "pwned").exists()
    for path in notes.iterdir():
        path.unlink()
    executed = submit(tmp_path, "--run", "a1", "--execute", *chosen)
    assert executed.returncode == 0, executed.stderr
    executed_call = recorded_call(notes)
    assert not (tmp_path / "pwned").exists()
    assert without_descriptor(pasted_call[1]) == without_descriptor(executed_call[1])
    assert pasted_call[0] == executed_call[0]
    if pasted_call[0] == "curl":
        assert json.loads(pasted_call[2]) == json.loads(executed_call[2])
    else:
        # On gke, kubectl gets each object for itself, as JSON.
        assert yaml.safe_load(pasted_call[2]) == yaml.safe_load(executed_call[2])
    if target == "ai-platform":
        assert [f"--a{number}={text}" for number, text in enumerate(HOSTILE)] == [
            word for word in pasted_call[1] if word[:3] == "--a"
        ]


def without_descriptor(words: list[str]) -> list[str]:
    """Return the arguments without the file descriptor of the token's pipe."""
    return ["@/dev/fd/N" if word.startswith("@/dev/fd/") else word for word in words]


@pytest.mark.parametrize("target", SIZES)
def test_execute_starts_no_shell(tmp_path: Path, notes: Path, target: str) -> None:
    """No shell on the PATH is started, and the printed command can be pasted."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(hostile_spec(target)))
    for name in ("sh", "bash", "dash", "zsh", "env"):
        path = tmp_path / "bin" / name
        path.write_text('#!/bin/bash\ntouch "$NOTES/shell"\nexec /bin/bash "$@"\n')
        path.chmod(0o755)
    shell_free = "#!/bin/bash\n"
    for name in ("gcloud", "kubectl", "curl"):
        path = tmp_path / "bin" / name
        path.write_text(shell_free + path.read_text().partition("\n")[2])
    completed = submit(tmp_path, "--execute")
    assert completed.returncode == 0, completed.stderr
    assert not (notes / "shell").exists()
    if target != "gke":  # which runs several commands
        (running,) = [
            line for line in completed.stderr.splitlines() if line.startswith("running: ")
        ]
        assert running.removeprefix("running: ") == submit(tmp_path).stdout.splitlines()[1]
    log = ["read its log with"] if target in ("vertex-ai", "gke") else []
    hints = [line.partition(":")[0] for line in completed.stderr.splitlines()[-2 - len(log) :]]
    assert hints == ["watch it with", *log, "delete it with"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "gcloud is not on the PATH, and nothing was started"),
        ("exit 3", "gcloud exited with status 3"),
        ("kill -9 $$", "gcloud exited with status -9"),
        ("exec <&-; exit 0", "delete it with"),
    ],
)
def test_a_failing_program_is_reported(tmp_path: Path, script: str | None, message: str) -> None:
    """The error names the exit status, and a program that does not read its input is no error."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(hostile_spec("vertex-ai")))
    (tmp_path / "bin").mkdir()
    if script is not None:
        program(tmp_path / "bin", "gcloud", script)
    path = str(tmp_path / "bin")
    completed = run_here(tmp_path, "submit", "--execute", env={**ENVIRONMENT, "PATH": path})
    assert message in completed.stderr
    assert "Traceback" not in completed.stderr
    assert completed.returncode == (0 if "delete" in message else 1)


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    """A file that is not executable code is named, and the help suggests a fix."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(hostile_spec("vertex-ai")))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gcloud").write_bytes(b"\x7fELF no program")
    (tmp_path / "bin" / "gcloud").chmod(0o755)
    path = str(tmp_path / "bin")
    completed = run_here(tmp_path, "submit", "--execute", env={**ENVIRONMENT, "PATH": path})
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-2].startswith("tpucfg: gcloud cannot be started: ")
    assert completed.stderr.splitlines()[-1].startswith("help: ")
