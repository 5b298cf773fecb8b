"""The command in a folder with a small spec."""

import json
from functools import partial
from pathlib import Path

import pytest

from process import Run, run_here
from spec_factory import spec


@pytest.fixture
def tpucfg(tmp_path: Path) -> Run:
    """Return a function that runs the command in a folder with a small spec, an invalid one and another valid one."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(), indent=1))
    (tmp_path / "wrong.yaml").write_text(json.dumps(spec(sizes=["v9-8"], name="wrong"), indent=1))
    (tmp_path / "other.yaml").write_text(json.dumps(spec(name="other", sizes=["v2-8"]), indent=1))

    return partial(run_here, tmp_path)
