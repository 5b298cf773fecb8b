"""The command as a process: interruption, broken outputs, encodings, colors and shell completion."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from process import COMMAND, ENVIRONMENT, Run, default_signals, wait_for_reader
from spec_factory import ROOT, spec

pytestmark = pytest.mark.shell


@pytest.fixture
def tpucfg(tpucfg: Run, tmp_path: Path) -> Run:  # noqa: ARG001 - it writes the specs
    """Return a function that runs the command as a process in the folder of the specs."""

    def start(*arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        more = {"env": ENVIRONMENT, "capture_output": True, **more}
        return subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, text=True, check=False, timeout=60, **more
        )

    return start


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[[[", b"{" * 10_000])
def test_no_file_causes_a_traceback(tpucfg: Run, tmp_path: Path, content: bytes) -> None:
    """A file that is no spec and a missing file are findings."""
    (tmp_path / "bad.yaml").write_bytes(content)
    for name in ("bad.yaml", "missing.yaml", "."):
        completed = tpucfg("check", "--spec", name)
        assert completed.returncode == 1
        assert "error[TPU0" in completed.stdout
        assert completed.stderr == ""


def test_a_file_name_that_is_not_utf_8(tpucfg: Run, tmp_path: Path) -> None:
    """A file name that is not UTF-8 is printed with escapes, in JSON as well."""
    name = os.fsdecode(b"caf\xe9.yaml")
    (tmp_path / name).write_text("a: 1\n")
    assert tpucfg("check", "--spec", name).stdout.startswith("caf\\udce9.yaml:1:1: error")
    assert json.loads(tpucfg("check", "--spec", name, "--format", "json").stdout)[0]["file"] == name


def test_output_is_utf_8_on_every_machine(tpucfg: Run) -> None:
    """The locale's encoding changes no byte of the output."""
    ascii_only = {
        **ENVIRONMENT,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    arguments = ("check", "--spec", str(ROOT / "tpucfg.yaml"))
    assert "×" in tpucfg(*arguments).stdout
    assert tpucfg(*arguments, env=ascii_only, encoding="utf-8").stdout == tpucfg(*arguments).stdout


def test_color_is_only_for_terminals(tpucfg: Run) -> None:
    """There is no color in a pipe, on a dumb terminal or with NO_COLOR."""
    arguments = ("check", "--spec", "wrong.yaml")
    assert "\033" not in tpucfg(*arguments).stdout
    for variables, coloured in (
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ):
        read_end, write_end = pty.openpty()
        tpucfg(*arguments, env={**ENVIRONMENT, **variables}, capture_output=False, stdout=write_end)
        os.close(write_end)
        output = os.read(read_end, 100_000).decode()
        os.close(read_end)
        assert "TPU020" in output
        assert ("\033[" in output) == coloured


def test_a_closed_pipe_is_no_error_message(tpucfg: Run) -> None:
    """If the reader closes the pipe, the status is that of SIGPIPE and there is no message."""
    for arguments in (
        ("render",),
        ("check", "--spec", "wrong.yaml"),
        ("render", "--spec", str(ROOT / "tpucfg.yaml")),
    ):
        read_end, write_end = os.pipe()
        os.close(read_end)
        completed = tpucfg(
            *arguments, capture_output=False, stdout=write_end, stderr=subprocess.PIPE
        )
        os.close(write_end)
        assert completed.returncode == 141
        assert completed.stderr == "" or ": warning[TPU" in completed.stderr  # the spec's own


IN_A_SHELL = pytest.mark.parametrize(
    "words", ["render", "check --format sarif", "--help", "--version"]
)
"""Each way in which a command prints; e2e/test_writing.py has a full disk for every command."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a spec, and return its folder."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec()))
    return tmp_path


def in_a_shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command line in a shell; `$0` is the program."""
    program = Path(sys.executable).with_name("tpucfg")
    command = ["sh", "-c", f'"$0" {line}', str(program)]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


@IN_A_SHELL
def test_a_closed_stdout_is_an_error(project: Path, words: str) -> None:
    """Results that are lost are an error in one line, with status 1; never a traceback."""
    completed = in_a_shell(f"{words} >&-", project)
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1:] == ["tpucfg: the output: stdout is closed"]
    assert "Traceback" not in completed.stderr
    assert in_a_shell(f"{words} <&- >&- 2>&-", project).returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@IN_A_SHELL
def test_a_full_disk_is_an_error(project: Path, words: str) -> None:
    """Output on a full disk is an error with status 1, also if the message cannot be written either."""
    completed = in_a_shell(f"{words} >/dev/full", project)
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1:] == ["tpucfg: the output: No space left on device"]
    assert in_a_shell(f"{words} >/dev/full 2>&1", project).returncode == 1


def test_no_file_takes_the_place_of_a_closed_stdout(project: Path) -> None:
    """The listing of the written files is lost, but it is not written to one of them."""
    assert in_a_shell("render --out out >&-", project).returncode == 1
    assert in_a_shell("render --out out --check", project).returncode == 0


BUFFERED = {key: value for key, value in ENVIRONMENT.items() if key != "PYTHONUNBUFFERED"}
EITHER_WAY = pytest.mark.parametrize(
    "environment", [BUFFERED, {**BUFFERED, "PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"]
)


@EITHER_WAY
@pytest.mark.parametrize("words", [["render"], ["schema"], ["sizes"]], ids=" ".join)
def test_a_partial_write_is_an_error(
    tmp_path: Path, words: list[str], environment: dict[str, str]
) -> None:
    """Output of which only the start could be written is an error, with buffered and unbuffered streams."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec()))
    limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *COMMAND, *words]
    # The limit would also cut the bytecode of a module that no process has imported before, for all that come after.
    environment = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    with (tmp_path / "out").open("w") as out:
        completed = subprocess.run(
            limited,
            cwd=tmp_path,
            env=environment,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (completed.returncode, completed.stderr) == (1, "tpucfg: the output: File too large\n")


@EITHER_WAY
def test_a_pipe_closed_in_the_middle_exits_with_141(environment: dict[str, str]) -> None:
    """The status is that of SIGPIPE also if the reader has read a part of the output."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "render", *["--spec", str(ROOT / "tpucfg.yaml")] * 20],
        env=environment,
        stdout=write_end,
    )
    os.close(write_end)
    assert os.read(read_end, 10)
    os.close(read_end)
    assert process.wait() == 141


def test_ctrl_c_exits_with_130(tmp_path: Path) -> None:
    """An interrupted command exits at once, without a message, with the status that shells expect."""
    read_end, write_end = os.pipe()
    command = [*COMMAND, "check", "--spec", "/dev/stdin"]
    with default_signals():
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdin=read_end,
            stderr=subprocess.PIPE,
            text=True,
        )
    os.close(read_end)
    os.write(
        write_end, b"#" * 100_000
    )  # more than a pipe buffers: returns once the command is reading
    wait_for_reader(process, write_end)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    os.close(write_end)
    assert (process.returncode, errors) == (130, "")


COMPLETE = """
eval "$(_TPUCFG_COMPLETE=source_bash tpucfg)"
function=$(complete -p tpucfg | sed 's/.*-F \\([^ ]*\\).*/\\1/')
for line in "$@"; do
  read -ra COMP_WORDS <<< "tpucfg $line"
  [[ $line != *" " ]] || COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  "$function" tpucfg
  echo "${COMPREPLY[*]}"
done
"""
COMPLETIONS = {
    "ren": "render",
    "sta": "status",
    "record --fr": "--from",
    "record --env p": "prod",
    "record --env prod --size v3": "v3-8 v3-32",
    "status --env ": "dev prod",
    "submit --fo": "--force",
    "render --si": "--size",
    "render --env ": "dev prod",
    "render --env p": "prod",
    "check --size v3": "v3-8 v3-32",
    "render --target c": "cloud-tpu compute-engine",
    "render --format ": "yaml json",
    "check --format s": "sarif",
    "ladder --format m": "markdown",
    "render --spec other.yaml --env ": "dev",
    "render --spec broken.yaml --env ": "",
    "render --spec missing.yaml --size ": "",
}


def test_completion_works_in_bash(tmp_path: Path) -> None:
    """A real bash completes commands, options, environments and sizes of the spec; a broken spec is no error."""
    prod = {"project": "my-project-prod", "region": "europe-west4", "sizes": ["v3-8", "v3-32"]}
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(environments__prod=prod)))
    (tmp_path / "other.yaml").write_text(json.dumps(spec()))
    (tmp_path / "broken.yaml").write_text("environments: {dev: null, x: [")
    shim = tmp_path / "bin" / "tpucfg"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m tpucfg "$@"\n')
    shim.chmod(0o755)
    completed = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", *COMPLETIONS],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PATH": f"{shim.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stderr == ""
    assert dict(zip(COMPLETIONS, completed.stdout.splitlines(), strict=True)) == COMPLETIONS
