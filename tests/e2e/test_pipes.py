"""Arguments that are no regular files: a pipe without a writer, and an endless device."""

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
def test_pipes_and_devices_are_refused(
    tpucfg: Run, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    """The command refuses the file at once, although the pipe never has a writer."""
    (tmp_path / "tpucfg.yaml").write_text(SPEC)
    os.mkfifo(tmp_path / "pipe.yaml")
    completed = tpucfg(*arguments, name)
    assert completed.returncode in (1, 2)
    assert "it is a pipe or a device, not a file" in completed.stdout + completed.stderr


def test_diff_refuses_a_pipe_among_configs(tpucfg: Run, tmp_path: Path) -> None:
    """A config that cannot be read is an error, and is not compared as missing."""
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "before" / "config.yaml")
    (tmp_path / "after" / "config.yaml").write_text("a: 1\n")
    completed = tpucfg("diff", "before", "after")
    assert completed.returncode == 1
    assert "it is a pipe or a device" in completed.stderr
    assert "added" not in completed.stdout
