"""Changes of ordinary work: few of them have a caution, and each of these is a right one."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from repositories import Repository, project
from tpucfg.changes.config_diff import config_difference
from tpucfg.changes.costs import compute_costs
from tpucfg.changes.impact import compute_impact
from tpucfg.changes.records import read_revision_records
from tpucfg.changes.revisions import open_compiled_revisions
from tpucfg.git.repository import find_repository
from tpucfg.git.snapshots import CompareRequest
from tpucfg.plan import Selection

CHANGES: Final[list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_suffix("").with_name("everyday.yaml").read_text()
)
MAX_WITH_CAUTION: Final = 2


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with one commit, to copy."""
    return project(tmp_path_factory.mktemp("everyday") / "project").folder


def _apply(repository: Repository, edits: list[list[str]]) -> None:
    for file, old, new in edits:
        path = repository.folder / file
        if old:
            repository.edit((old, new), file=file)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["id"])
def test_ordinary_work_is_reported_without_noise(
    change: dict[str, Any], template: Path, tmp_path: Path
) -> None:
    """A change of the spec has an effect or a row; only what a reader has to judge is a caution."""
    repository = Repository(Path(shutil.copytree(template, tmp_path / "project")))
    _apply(repository, change.get("before", []))
    repository.commit()
    _apply(repository, change["edit"])

    opened = find_repository(repository.folder)
    request = CompareRequest("HEAD", None, repository.spec, with_program=False, repository=opened)
    with open_compiled_revisions(request, Selection()) as (before, after):
        difference = config_difference(before.configs, after.configs)
        records = read_revision_records(before), read_revision_records(after)
        impact = compute_impact(before, after, difference, records)
        costs = compute_costs(before, after, records)

    assert not before.is_broken
    assert not after.is_broken
    cautions = [
        located for located in (*impact.statements, *costs.statements) if located.statement.risk
    ]
    expected = change.get("cautions", [])
    assert len(cautions) == len(expected), [located.plain for located in cautions]
    assert all(words in located.plain for words, located in zip(expected, cautions, strict=True))
    is_of_spec = any(file == "tpucfg.yaml" for file, _, _ in change["edit"])
    assert bool(impact.statements or impact.rows) or not is_of_spec


def test_few_of_the_changes_have_a_caution() -> None:
    """A reader who sees a caution in every comment reads none."""
    assert len(CHANGES) == 20
    assert sum("cautions" in change for change in CHANGES) <= MAX_WITH_CAUTION
