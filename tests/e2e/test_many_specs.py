"""Hundreds of specs in one command."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from process import COMMAND, ENVIRONMENT, default_signals, wait_for_reader
from spec_factory import spec

COUNT: Final = 200


def write_specs(folder: Path, **changes: dict[str, Any]) -> list[str]:
    """Write the specs, with changes by name and a warning in every tenth, and return their options."""
    for number in range(COUNT):
        name = f"p-{number}"
        data = spec(name=name, sizes=["v2-8", "v2-32"], **({} if number % 10 else {"training__train_steps": 200}))
        (folder / f"{name}.yaml").write_text(json.dumps({**data, **changes.get(name, {})}))
    return [word for number in range(COUNT) for word in ("--spec", f"p-{number}.yaml")]


def start(folder: Path, *arguments: str, stdin: int | None = None) -> "subprocess.Popen[str]":
    """Start the command in a folder."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )


def wait(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Return the exit status and the outputs."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def files(folder: Path) -> dict[str, str]:
    """Return every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("format_", ["yaml", "json"])
def test_files_and_standard_output_agree(tmp_path: Path, format_: str) -> None:
    """Both have every config once; the specs with warnings are named in their order."""
    options = write_specs(tmp_path)
    status, out, err = wait(start(tmp_path, "render", "--format", format_, *options))
    assert status == 0
    warned = [line.split(":")[0] for line in err.splitlines() if ": warning[TPU042]: " in line]
    assert warned == [f"p-{number}.yaml" for number in range(0, COUNT, 10)]
    assert wait(start(tmp_path, "render", "--format", format_, *options, "--out", "out"))[0] == 0
    written = files(tmp_path / "out")
    assert len(written) == 2 * COUNT
    assert all(text in out for text in written.values())


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"sizes": ["v2-32", "v9-8"]}, 1, "error[TPU020]"),
        ({"sizes": ["v2-8"]}, 2, "v2-32 is in no ladder"),
        ({"name": "p-7"}, 2, "2 of the specs have the name p-7"),
    ],
)
def test_an_error_in_one_spec_writes_nothing(
    tmp_path: Path, changes: dict[str, Any], status: int, message: str
) -> None:
    """A spec in the middle that cannot be rendered is reported, and no config of any spec is written."""
    options = write_specs(tmp_path, **{"p-123": changes})
    returncode, _, err = wait(start(tmp_path, "render", "--size", "v2-32", "--out", "out", *options))
    assert returncode == status
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_the_errors_of_all_specs_are_reported(tmp_path: Path) -> None:
    """One run reports the errors of every spec."""
    options = write_specs(tmp_path, **{name: {"sizes": ["v9-8"]} for name in ("p-3", "p-123")})
    status, out, err = wait(start(tmp_path, "render", "--out", "out", *options))
    assert (status, out) == (1, "")
    assert [line.split(":")[0] for line in err.splitlines() if "error[TPU020]" in line] == ["p-3.yaml", "p-123.yaml"]
    assert not (tmp_path / "out").exists()


def test_ctrl_c_writes_nothing(tmp_path: Path) -> None:
    """An interrupted run exits with the status of Ctrl-C, prints no traceback and writes no file."""
    read_end, write_end = os.pipe()
    options = [*write_specs(tmp_path), "--spec", "/dev/stdin"]
    with default_signals():
        process = start(tmp_path, "render", "--out", "out", *options, stdin=read_end)
    os.close(read_end)
    os.write(write_end, b"#" * 100_000)  # more than a pipe buffers: returns once the command reads the last spec
    wait_for_reader(process, write_end)
    process.send_signal(signal.SIGINT)
    status, out, err = wait(process)
    os.close(write_end)
    assert (status, out) == (130, "")
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_two_specs_with_the_same_folders_are_a_warning(tmp_path: Path) -> None:
    """The name and the bucket decide on the folders; a warning stops nothing, and another name ends it."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(json.dumps(spec()))
    status, out, _ = wait(start(tmp_path, "check", "--spec", "a.yaml", "--spec", "b.yaml"))
    assert (status, out.count("warning[TPU126]: dev has the folders of dev in a.yaml: gs://")) == (0, 1)
    (tmp_path / "b.yaml").write_text(json.dumps(spec(name="another")))
    assert "TPU126" not in wait(start(tmp_path, "check", "--spec", "a.yaml", "--spec", "b.yaml"))[1]
