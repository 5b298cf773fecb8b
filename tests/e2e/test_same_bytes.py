"""Equal bytes from every process: each command with each format, under two hash seeds."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from false_python import Folder
from process import ENVIRONMENT
from repositories import ADDRESS, project
from tpucfg.cli.app import COMMANDS, app, run

pytestmark = pytest.mark.shell

SIZE: Final = ("--env", "dev", "--size", "v2-8")
OTHER: Final = ("--spec", "fit/tpucfg.yaml")
RUNS: Final[Sequence[tuple[str, ...]]] = (
    ("record", *SIZE, "--metric", "examples_per_second=100", "--metric", "accuracy=0.9"),
    ("check",),
    ("check", "--spec", "wrong.yaml"),
    ("render",),
    ("render", "--env", "dev", "--out", "configs"),
    ("ladder",),
    ("sizes",),
    ("schema", "tpucfg"),
    ("explain", "TPU021"),
    ("why", "workerPoolSpecs", *SIZE),
    ("import", "configs/dev/v2-8/config.yaml"),
    ("fit", *OTHER),
    ("tune", *OTHER, "--sizes", "v5litepod-16,v5litepod-64"),
    ("submit", *SIZE),
    ("status",),
    ("infra", "--env", "dev"),
    ("diff",),
    ("review", "--base", "HEAD"),
    ("init", "new", "--infra", "--workflow", "--trainer", "jax", "--install-from", ADDRESS),
)
"""Every command, in an order in which each finds what it reads."""
COMPILING: Final = ("fit", "tune")
# One process for all of them: their imports take longer than they do.
SCRIPT: Final = """\
import io, json, sys
from tpucfg.cli.app import run
answers = []
for arguments in json.load(sys.stdin):
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in streams)
    code = run(arguments)
    printed = [stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr)]
    sys.stdout, sys.stderr = streams
    answers.append([code, *printed])
json.dump(answers, sys.stdout)
"""


def formats(command: str) -> Sequence[str]:
    """Return the formats of a command; none for one without the option."""
    group: Any = get_command(app)
    options = {option.name: option for option in group.get_command(None, command).params}
    return options["format"].metavar.split("|") if "format" in options else ()


def commands() -> list[list[str]]:
    """Return the words of each command with each of its formats."""
    runs = []
    for words in RUNS:
        # With --out, render prints the names of files.
        names = () if "--out" in words else formats(words[0])
        runs += [[*words, "--format", name] for name in names] or [[*words]]
    return runs


def create_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Create a repository with changes in its working tree, and specs with a mistake and with a compiler."""
    repository = project(folder)
    text = repository.spec.read_text()
    (folder / "wrong.yaml").write_text(text.replace("v2-8", "v9-8").replace("batch_size", "batch"))
    changes = (
        (":1.0", ":1.1"),
        ("batch_size: 1024", "batch_size: 512"),
        ("protect: true", "protect: false"),
    )
    repository.edit(*changes)
    (folder / "fit").mkdir()
    compiled = Folder(folder / "fit", capsys)
    compiled.python("answer(result=known(RESULT))")


def run_all(folder: Path, seed: str) -> "subprocess.Popen[bytes]":
    """Start a process that runs the commands in a folder."""
    with (folder.parent / "answers").open("wb") as answers:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            cwd=folder,
            env={**ENVIRONMENT, "PYTHONHASHSEED": seed},
            stdin=subprocess.PIPE,
            stdout=answers,
        )
    assert process.stdin
    process.stdin.write(json.dumps(commands()).encode())
    process.stdin.close()
    return process


def without_times(words: Sequence[str], answer: Sequence[Any]) -> Sequence[Any]:
    """Return the answer of a command without its progress, and the seconds that its compilations took."""
    if words[0] not in COMPILING:
        return answer
    code, printed, _ = answer
    return code, re.sub(r'"total": [\d.]+', "", printed)


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files below a folder, without git's own."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_every_command_prints_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither what is printed nor a file depends on the order of a set, or of a map of a protocol."""
    assert {words[0] for words in RUNS} == {*COMMANDS}
    folders = [tmp_path / seed / "project" for seed in ("1", "2")]
    create_project(folders[0], capsys)
    # Both find results of one compilation, which have the time that it took.
    monkeypatch.chdir(folders[0])
    for words in RUNS:
        assert words[0] not in COMPILING or run([*words]) == 0
    shutil.copytree(folders[0], folders[1])
    processes = [run_all(folder, folder.parent.name) for folder in folders]
    assert [process.wait() for process in processes] == [0, 0]

    first, second = (json.loads((folder.parent / "answers").read_bytes()) for folder in folders)

    for command, one, other in zip(commands(), first, second, strict=True):
        assert without_times(command, one) == without_times(command, other), command
        assert one[1], (command, one)
    assert files(folders[0]) == files(folders[1])
