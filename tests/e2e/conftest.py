"""The command as a subprocess, in a folder with a small spec."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from process import COMMAND, ENVIRONMENT, Run
from spec_factory import spec


@pytest.fixture
def tpucfg(tmp_path: Path) -> Run:
    """Return a function that runs the command in a folder with a small spec, an invalid one and another valid one."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(), indent=1))
    (tmp_path / "wrong.yaml").write_text(json.dumps(spec(sizes=["v9-8"], name="wrong"), indent=1))
    (tmp_path / "other.yaml").write_text(json.dumps(spec(name="other", sizes=["v2-8"]), indent=1))

    def run(*arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        more = {"env": ENVIRONMENT, "capture_output": True, **more}
        return subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, text=True, check=False, timeout=60, **more
        )

    return run
