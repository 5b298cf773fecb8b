"""The files that a program reads are part of its result: recorded by the worker, compared by the readers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from compile_worker import WORKER, Slice, compile_step
from false_python import Folder
from tpucfg.cli.app import run

RECORDER: Final = """
import json, sys
sys.path[:0] = [sys.argv[1], ""]
from user_function import OpenedFiles
opened = OpenedFiles(sys.argv[2])
import program
print(json.dumps(opened.stop()))
open(sys.argv[2] + "/late.json").close()
"""


def opened(folder: Path, program: str) -> list[str]:
    """Return the files that the hook records while a program runs in a folder."""
    (folder / "program.py").write_text(program)
    arguments = [sys.executable, "-B", "-c", RECORDER, str(WORKER.parent), str(folder)]
    output = subprocess.run(
        arguments, cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    names: list[str] = json.loads(output)
    return [name for name in names if name != "program.py"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with files of each kind."""
    folder = tmp_path / "spec"
    for name in (
        "model.json",
        "conf/a.json",
        "results/fit.json",
        ".env",
        ".git/config",
        "x/__pycache__/y.pyc",
        "late.json",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    (tmp_path / "outside.json").write_text("{}")
    (folder / "link.json").symlink_to("conf/a.json")
    (folder / "large.bin").write_bytes(b"0" * ((4 << 20) + 1))
    return folder


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("open('model.json').read()", ["model.json"]),
        ("import pathlib; pathlib.Path('conf/a.json').read_text()", ["conf/a.json"]),
        ("import os; os.close(os.open(b'model.json', os.O_RDONLY))", ["model.json"]),
        (
            "import os; os.chdir('conf'); open('a.json'); open('../model.json')",
            ["conf/a.json", "model.json"],
        ),
        ("open('link.json')", ["link.json", "conf/a.json"]),
        ("open('model.json', 'r+')", ["model.json"]),
        ("open('new.json', 'w').close(); open('new.json')", []),
        ("open('log', 'a').close(); open('log')", []),
        ("import contextlib\nwith contextlib.suppress(OSError): open('absent.json')", []),
        ("import os; os.close(os.open('conf', os.O_RDONLY)); open(os.dup(0))", []),
        ("open('../outside.json'); open('large.bin', 'rb')", []),
        (
            "open('results/fit.json'); open('.git/config'); open('.env'); open('x/__pycache__/y.pyc')",
            [],
        ),
    ],
)
def test_files_that_are_read_are_recorded(files: Path, program: str, names: list[str]) -> None:
    """Only files below the folder that a reader can hash, and that the program did not write itself."""
    assert opened(files, program) == names


@pytest.mark.slow
def test_files_are_bounded(files: Path) -> None:
    """A program that reads its data set neither fills the result nor makes each command read all of it."""
    many = "for number in range(1500): open(f'{number}', 'w').close()\nfor number in range(1500): open(f'{number}')"
    assert opened(files, many) == []
    assert (
        len(opened(files, "for number in range(1500): open(f'{number}')")) == 999
    )  # program.py is the first
    (files / "big.bin").write_bytes(b"0" * (4 << 20))
    program = "import os\nfor number in range(20):\n  os.link('big.bin', f'{number}.bin'); open(f'{number}.bin')"
    assert len(opened(files, program)) == 15  # program.py is the first of 64 MiB


def test_a_change_of_a_file_that_was_read_makes_the_result_outdated(folder: Folder) -> None:
    """The gate does not let another model through than the one that was compiled."""
    (folder.path / "model.json").write_text('{"width": 256}')
    folder.python("RESULT['files'] = ['step.py', 'model.json']; answer(result=RESULT)")
    assert folder.fit()[0] == 0
    assert folder.file()[0]["files"].keys() == {"step.py", "model.json"}
    folder.spec(("training:", "gate: {fit: true}\ntraining:"))
    assert run(["submit", "--size", "v5litepod-16"]) == 0
    (folder.path / "model.json").write_text('{"width": 90000}')
    assert run(["submit", "--size", "v5litepod-16"]) == 1


def test_the_worker_records_files(tpu_python: str, tmp_path: Path) -> None:
    """A step that reads its shapes when it is traced has the file in its result."""
    (tmp_path / "shapes.json").write_text("[8, 8]")
    (tmp_path / "job.py").write_text(
        "import json, jax\n"
        "def multiply(x):\n"
        "    assert json.load(open('shapes.json')) == [8, 8]\n"
        "    return x @ x\n"
        "def step(devices, flags):\n"
        "    return jax.jit(multiply), (jax.ShapeDtypeStruct((8, 8), 'float32'),)\n"
    )
    chip = Slice("v5e:1x1", 1, {"chips_per_host_bounds": [1, 1, 1]})
    result = compile_step(tpu_python, "job:step", chip, folder=tmp_path).result
    assert result["files"] == ["job.py", "shapes.json"]
