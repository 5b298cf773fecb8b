"""The configs of the repository's examples are valid for the official types."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import official
from tpucfg.catalog import Catalog
from tpucfg.plan import plan
from tpucfg.render.pipeline import compile_project, render_configs
from tpucfg.spec.parse import load_project

pytestmark = pytest.mark.official

EXAMPLES = Path(__file__).parents[2] / "examples"
SPECS = sorted(path for path in EXAMPLES.rglob("tpucfg.yaml") if path.parent.name != "mistakes")


def _configs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the target, the size and the text of each config of an example."""
    project, findings = load_project(path)
    assert project is not None, findings
    jobs = plan(project, Catalog()).jobs
    for job, config in zip(jobs, render_configs(compile_project(project, Catalog())), strict=True):
        yield job.target, job.size, config.text


@pytest.mark.telling
def test_every_example_is_officially_valid() -> None:
    """The types of Google and Kubernetes accept each config of each example.

    It finds a field that the compiler writes and that a service does not have, or has elsewhere or with another type.
    """
    by_target: dict[str, list[tuple[str, str]]] = {}
    for path in SPECS:
        for target, size, text in _configs(path):
            by_target.setdefault(target, []).append((f"{path.parent.name}: {size}", text))
    assert {*by_target} == {*official.MODULES}
    for target, named in by_target.items():
        errors = official.all_refusals(target, [text for _, text in named])
        assert {
            name: refused for (name, _), refused in zip(named, errors, strict=True) if refused
        } == {}
