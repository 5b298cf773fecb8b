"""The recipes of the documentation, and the examples with a training step, compiled with the real TPU compiler."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from spec_factory import ROOT
from tpucfg.cli.app import run
from tpucfg.fit.fit_file import fit_path, read_fit_file

EXAMPLES: Final = ROOT / "examples"
PAGE: Final = (ROOT / "docs" / "fit-recipes.md").read_text(encoding="utf-8")
SMALL: Final[Mapping[str, Mapping[str, Any]]] = {
    "chat": {"batch_size": 8, "grad_accum": 2, "model_parallel": 2, "sequence_length": 512},
    "fit/moe": {"batch_size": 4, "sequence_length": 512},
    "fit/nnx": {"batch_size": 4, "sequence_length": 128},
    "fit/keras": {"batch_size": 4},
    "fit/resnet": {"batch_size": 4},
}
"""The figures of each example for its model `tiny`, on a slice of 4 chips."""


def small_spec(folder: Path, figures: Mapping[str, Any], python: str) -> Path:
    """Change an example's spec to one small rung, and return its path."""
    path = folder / "tpucfg.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    spec["sizes"] = ["v5litepod-4"]
    spec["environments"] = {"dev": {"project": "my-project-dev", "region": "us-west4"}}
    spec["trainer"]["args"]["model"] = "tiny"
    spec["trainer"]["fit"]["python"] = python
    spec["training"] |= {**figures, "tuned_on": "v5litepod-4"}
    spec.pop("overrides", None)
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return path


@pytest.mark.parametrize("example", SMALL)
def test_an_example_is_compiled(
    example: str, tmp_path: Path, tpu_python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its step fits on four chips with the model `tiny`, its work is counted, its own files are known.

    A second process builds an equal step: it has no random constants.
    """
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns("results"))
    spec = small_spec(folder, SMALL[example], tpu_python)

    assert run(["fit", "--spec", str(spec)]) == 0

    (result,) = read_fit_file(fit_path(folder)).results.values()
    assert result.fits
    assert 0 < result.memory.used < 1 << 30
    assert result.flops > 10**8
    assert result.uncounted == ()
    assert result.forecast
    assert result.forecast.seconds
    assert {path.partition("/")[0].removesuffix(".py") for path in result.files} == {"trainer"}
    assert run(["fit", "--spec", str(spec)]) == 0
    assert "unchanged" in capsys.readouterr().err


def test_every_example_with_a_step_is_compiled() -> None:
    """The list above has all of them, but for MaxText's own step, which needs another Python."""
    with_step = {
        path.parent.relative_to(EXAMPLES).as_posix()
        for path in EXAMPLES.rglob("tpucfg.yaml")
        if "fit" in (yaml.safe_load(path.read_text(encoding="utf-8")).get("trainer") or {})
    }
    assert with_step == {*SMALL, "maxtext"}


def code_blocks() -> list[str]:
    """Return the blocks of Python on the page."""
    return re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_pages_code_is_that_of_the_examples() -> None:
    """Each block is a part of a program in `examples/`."""
    programs = [path.read_text(encoding="utf-8") for path in EXAMPLES.rglob("*.py")]
    assert code_blocks()
    assert not [
        block for block in code_blocks() if not any(block in program for program in programs)
    ]
