"""A search with the real TPU compiler."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from spec_factory import ROOT
from tpucfg.cli.app import run

TUNE = {"model_parallel": [1, 2], "grad_accum": [1, 2, 4]}


def fitting(output: str) -> dict[str, tuple[str, str]]:
    """Return the accumulation and the micro-batch that fit, by the number of devices that share the model."""
    _, _, table = output.partition("the largest micro-batch that fits, as compiled\n")
    header, *rows = [re.split(" {2,}", line.strip()) for line in table.partition("\n\n")[0].splitlines()]
    named = [dict(zip(header, row, strict=False)) for row in rows]
    return {row["model_parallel"]: (row["grad_accum"], row["micro-batch"]) for row in named}


def test_a_small_model_is_searched(tmp_path: Path, tpu_python: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The largest micro-batch of each division fits, the current rung is compiled as `fit` does, nothing else is."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "chat", folder, ignore=shutil.ignore_patterns("results"))
    data = yaml.safe_load((folder / "tpucfg.yaml").read_text(encoding="utf-8"))
    data |= {"sizes": ["v5litepod-4"], "tune": TUNE}
    data["environments"] = {"dev": {"project": "my-project-dev", "region": "us-west4"}}
    data["trainer"]["args"]["model"] = "tiny"
    data["trainer"]["fit"]["python"] = tpu_python
    data["training"] |= {"tuned_on": "v5litepod-4", "batch_size": 8, "grad_accum": 2, "sequence_length": 512}
    data["training"]["model_parallel"] = 2
    data.pop("overrides")
    (folder / "tpucfg.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    command = ["tune", "--spec", str(folder / "tpucfg.yaml")]

    assert run(command) == 0

    first = capsys.readouterr().out
    assert fitting(first) == {"1": ("1", "2"), "2": ("1", "4")}
    assert "not compiled: 2, as a larger micro-batch of the same other values fits" in first
    assert "refused by the plan: v5litepod-4 model_parallel=1 grad_accum=4:" in first
    assert run(command) == 0
    output = capsys.readouterr()
    assert fitting(output.out) == fitting(first)
    assert output.err.count("(as kept)") == 2
