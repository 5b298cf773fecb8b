"""The pre-commit hooks, run like pre-commit: the words of the entry, the args, and the files."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}


def _run(hook: str, folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    command = [*shlex.split(HOOKS[hook]["entry"]), *HOOKS[hook].get("args", ()), *files]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a folder with a valid and an invalid spec."""
    shutil.copy(ROOT / "tpucfg.yaml", tmp_path)
    (tmp_path / "wrong").mkdir()
    text = (ROOT / "tpucfg.yaml").read_text(encoding="utf-8")
    (tmp_path / "wrong" / "tpucfg.yaml").write_text(
        text.replace("v2-32", "v2-33"), encoding="utf-8"
    )
    return tmp_path


def test_check_passes_a_valid_spec(project: Path) -> None:
    """A spec without errors passes."""
    process = _run("tpucfg-check", project, "tpucfg.yaml")

    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "files", [("wrong/tpucfg.yaml", "tpucfg.yaml"), ("tpucfg.yaml", "wrong/tpucfg.yaml")]
)
def test_check_fails_for_any_invalid_spec(project: Path, files: tuple[str, ...]) -> None:
    """All files are checked, and the finding is located in its own file."""
    process = _run("tpucfg-check", project, *files)

    assert process.returncode == 1
    assert "wrong/tpucfg.yaml:" in process.stdout
    assert "tpucfg.yaml, 9 configs: " in process.stdout


def test_render_fails_until_the_configs_are_committed(project: Path) -> None:
    """The hook writes nothing; it passes once the configs are there."""
    assert _run("tpucfg-render", project).returncode == 3
    assert not (project / "configs").exists()

    tpucfg = str(Path(sys.executable).parent / "tpucfg")
    subprocess.run(
        [tpucfg, "render", "--out", "configs"], cwd=project, check=True, capture_output=True
    )
    assert _run("tpucfg-render", project).returncode == 0
