"""The published runs that `make published-runs` compiles again."""

import json
from pathlib import Path
from typing import Any, Final

import published_table
import pytest
import yaml
from published_runs import RUNS, compile_run, row_of, spec_of, step_seconds

from official.maxtext_python import maxtext_python
from tpucfg.catalog import Catalog
from tpucfg.plan import Selection, plan
from tpucfg.spec.parse import project_from_document
from tpucfg.yamldoc.reader import read_text

DATA: Final[dict[str, Any]] = yaml.safe_load(RUNS.read_text(encoding="utf-8"))
CHEAP: Final = "v5e-maxtext-16b-1x256"


def test_a_run_makes_a_job_with_every_argument_of_its_recipe() -> None:
    """A figure of the recipe is a figure of the spec, and comes back under MaxText's name."""
    for name, run in DATA["runs"].items():
        flags = DATA["xla_flags"].get(run.get("xla_flags", ""), "").split()[:1]
        text = json.dumps(spec_of(run, flags, Path("python")))
        project, findings = project_from_document(read_text(text, "tpucfg.yaml"))
        assert project is not None, (name, findings)
        (job,) = plan(project, Catalog(), Selection()).jobs
        assert {*run["args"].split()} <= {*job.args}, name


def test_a_run_has_one_published_speed_with_its_source() -> None:
    """Both pages are at a fixed revision of a public repository."""
    for name, run in DATA["runs"].items():
        assert len({"step_seconds", "tokens_per_s_per_chip", "tflops_per_chip"} & {*run}) == 1, name
        assert {run[key].partition(":")[0] for key in ("figure", "recipe")} <= {
            *DATA["repositories"]
        }, name


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("v5p-deepseek2-16b-8", 5.667),
        ("v5p-llama2-70b-1024", 2 * 4096 / 692),
        ("v5e-maxtext-16b-1x256", 10.31),
    ],
)
def test_a_speed_is_a_time_of_a_step(name: str, seconds: float) -> None:
    """It is published as such, as tokens a second, or as the model's FLOPs a second."""
    assert step_seconds(DATA["runs"][name]) == pytest.approx(seconds, rel=1e-3)


def test_the_documentation_shows_the_runs_that_were_compiled() -> None:
    """The tables of docs/fit.md are what `python tools/published_table.py` writes."""
    assert [path.name for path, _ in published_table.differing()] == []


@pytest.mark.tpu_compiler
def test_a_published_run_is_compiled(tmp_path: Path) -> None:
    """It trained on real TPUs, so the compiler accepts it, and its work explains at least half of its time."""
    run = DATA["runs"][CHEAP]
    outcome = compile_run(run, DATA["xla_flags"], tmp_path, Path(maxtext_python()))
    assert outcome.failure is None
    assert outcome.result is not None
    row = row_of(run, outcome.result, [])
    assert row["fits"]
    assert row["step_seconds"] == pytest.approx(10.31, abs=0.01)
    bound = outcome.result.flops / 256 / 197e12
    assert row["step_seconds"] / 2 < bound < row["step_seconds"]
