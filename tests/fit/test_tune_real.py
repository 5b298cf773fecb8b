"""A search with the real TPU compiler."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from spec_factory import ROOT
from tpucfg.cli.app import run

TUNE = {"model_parallel": [1, 2], "grad_accum": [1, 2, 4]}


def test_a_small_model_is_searched(
    tmp_path: Path, tpu_python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest micro-batch of each division fits, the current rung is compiled as `fit` does, nothing else is."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "chat", folder, ignore=shutil.ignore_patterns("results"))
    data = yaml.safe_load((folder / "tpucfg.yaml").read_text(encoding="utf-8"))
    data |= {"sizes": ["v5litepod-4"], "tune": TUNE}
    data["environments"] = {"dev": {"project": "my-project-dev", "region": "us-west4"}}
    data["trainer"]["args"]["model"] = "tiny"
    data["trainer"]["fit"]["python"] = tpu_python
    data["training"] |= {
        "tuned_on": "v5litepod-4",
        "batch_size": 8,
        "grad_accum": 2,
        "sequence_length": 512,
    }
    data["training"]["model_parallel"] = 2
    data.pop("overrides")
    (folder / "tpucfg.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    command = ["tune", "--spec", str(folder / "tpucfg.yaml"), "--format", "json"]

    assert run(command) == 0

    first = json.loads(capsys.readouterr().out)
    fits = {
        row["model_parallel"]: (row["grad_accum"], row["fits"]["micro_batch"])
        for row in first["memory"]
    }
    assert fits == {1: (1, 2), 2: (1, 4)}
    assert first["not_compiled"] == {"larger fits": 2}
    assert [each["grad_accum"] for each in first["problems"]] == [4]
    assert run(command) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["memory"] == first["memory"]
    assert output.err.count("(as kept)") == 2
