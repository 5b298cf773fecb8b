"""Hundreds of specs in one command, which several processes then share: nothing of it shows but the time."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from process import COMMAND, ENVIRONMENT
from spec_factory import spec

MANY: Final = 200
CORES: Final = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
AT_HOME: Final = "import os, sys; os.sched_setaffinity(0, eval(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
SEVERAL: Final = pytest.mark.skipif(len(CORES) == 1, reason="this machine has one core to use")


def specs(folder: Path, **changed: dict[str, Any]) -> list[str]:
    """So many of them, with changes by name; every tenth has a warning."""
    for number in range(MANY):
        name = f"p-{number}"
        data = spec(name=name, sizes=["v2-8", "v2-32"], **({} if number % 10 else {"training__train_steps": 200}))
        (folder / f"{name}.yaml").write_text(json.dumps({**data, **changed.get(name, {})}))
    return [word for number in range(MANY) for word in ("--spec", f"p-{number}.yaml")]


def start(folder: Path, *arguments: str, cores: int) -> "subprocess.Popen[str]":
    """The command, at home on so many cores, in a process group of its own as a shell would have it."""
    return subprocess.Popen(
        [sys.executable, "-c", AT_HOME, json.dumps(CORES[:cores]), *COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Status and outputs."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def files(folder: Path) -> dict[str, str]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@SEVERAL
@pytest.mark.parametrize("format_", ["yaml", "json"])
def test_the_same_bytes_as_from_one_process(tmp_path: Path, format_: str) -> None:
    """Files, standard output and warnings, in the order of the specs."""
    words = specs(tmp_path)
    for where in (("--out", "one"), ()):
        alone = ended(start(tmp_path, "render", "--format", format_, *words, *where, cores=1))
        elsewhere = [word.replace("one", "two") for word in where]
        shared = ended(start(tmp_path, "render", "--format", format_, *words, *elsewhere, cores=2))
        assert alone[0] == 0
        assert alone[2].count("TPU042") == MANY // 10
        assert shared == (0, alone[1].replace("one/", "two/"), alone[2])
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert len(files(tmp_path / "one")) == 2 * MANY


@SEVERAL
@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"sizes": ["v2-32", "v9-8"]}, 1, "error[TPU020]"),
        ({"sizes": ["v2-8"]}, 2, "v2-32 is in no ladder"),
        ({"name": "p-7"}, 2, "2 of the specs are called p-7"),
    ],
)
def test_the_same_end_as_from_one_process(tmp_path: Path, wrong: dict[str, Any], status: int, said: str) -> None:
    """A spec in the middle that cannot be rendered: the others have their say, and nothing is written."""
    words = specs(tmp_path, **{"p-123": wrong})
    ends = [ended(start(tmp_path, "render", "--size", "v2-32", "--out", "out", *words, cores=n)) for n in (1, 2)]
    assert ends[0] == ends[1]
    assert ends[0][0] == status
    assert said in ends[0][2]
    assert "Traceback" not in ends[0][2]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=SEVERAL)])
def test_the_errors_of_all_specs_are_told(tmp_path: Path, cores: int) -> None:
    """Nobody fixes one spec and runs a thousand again to hear of the next."""
    words = specs(tmp_path, **{name: {"sizes": ["v9-8"]} for name in ("p-3", "p-123")})
    status, out, err = ended(start(tmp_path, "render", "--out", "out", *words, cores=cores))
    assert (status, out) == (1, "")
    assert [line.split(":")[0] for line in err.splitlines() if "error[TPU020]" in line] == ["p-3.yaml", "p-123.yaml"]
    assert not (tmp_path / "out").exists()


@SEVERAL
def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C reaches every process of the command; one of them says so, by its status, and all are gone."""
    process = start(tmp_path, "render", "--out", "out", *specs(tmp_path), cores=2)
    assert workers(process)
    os.killpg(process.pid, signal.SIGINT)
    status, out, err = ended(process)
    assert (status, out) == (130, "")
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert not (tmp_path / "out").exists()


@SEVERAL
def test_killed(tmp_path: Path) -> None:
    """Who ends the command so that it can end nothing itself leaves none of its processes behind."""
    process = start(tmp_path, "render", "--out", "out", *specs(tmp_path), cores=2)
    assert workers(process)
    process.kill()
    assert ended(process)[0] == -signal.SIGKILL  # both outputs are closed, so nobody is there who could still write


@SEVERAL
def test_a_process_that_was_ended_by_the_system(tmp_path: Path) -> None:
    """As happens where memory runs out: one clear error, and no file."""
    process = start(tmp_path, "render", "--out", "out", *specs(tmp_path), cores=2)
    os.kill(workers(process)[0], signal.SIGKILL)
    status, out, err = ended(process)
    assert (status, out) == (1, "")
    assert "a process that rendered was ended by somebody else, and nothing was written" in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def workers(process: "subprocess.Popen[str]") -> list[int]:
    """The processes that a command has started, as soon as it has."""
    told = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if found := told.read_text().split():
            return [int(child) for child in found]
        time.sleep(0.001)
    raise AssertionError(ended(process))
