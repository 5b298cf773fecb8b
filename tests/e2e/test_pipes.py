"""What is named as a file and is none: a pipe into which nobody writes, and a device that has no end."""

import os
from pathlib import Path

import pytest

from process import Run
from spec_factory import ROOT

SPEC = (ROOT / "tpucfg.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--spec"),
        ("render", "--spec"),
        ("check", "--target", "gke", "--config"),
        ("check", "--stack-outputs"),
    ],
)
@pytest.mark.parametrize("name", ["pipe.yaml", "/dev/zero"])
def test_no_file_is_waited_for(tpucfg: Run, tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    """The command says what it is, and ends, although nobody ever writes into the pipe."""
    (tmp_path / "tpucfg.yaml").write_text(SPEC)
    os.mkfifo(tmp_path / "pipe.yaml")
    ended = tpucfg(*arguments, name)
    assert ended.returncode in (1, 2)
    assert "it is a pipe or a device, not a file" in ended.stdout + ended.stderr


def test_a_pipe_among_configs_is_no_absent_config(tpucfg: Run, tmp_path: Path) -> None:
    """Two folders that differ in what cannot be read are not compared as if it were not there."""
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "before" / "config.yaml")
    (tmp_path / "after" / "config.yaml").write_text("a: 1\n")
    ended = tpucfg("diff", "before", "after")
    assert ended.returncode == 1
    assert "it is a pipe or a device" in ended.stderr
    assert "added" not in ended.stdout
