"""What the program alone says about a change, held against what the engine's preview says about the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import specs
from preview_scenarios import SCENARIOS, Scenario

from recorded_previews import read
from spec_factory import ROOT
from tpucfg.infra.mock_runner import run_program
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.review.changes.resource_change import Counts, ResourceChange, count_resources
from tpucfg.review.changes.resource_diff import IMMUTABLE_INPUTS, program_changes
from tpucfg.spec.parse import load_project

NUMBER = f"[number of {specs.PROJECT}]"
BUCKET = "gcp:storage/bucket:Bucket"


def made(folder: Path, environment: Mapping[str, Any], config: Mapping[str, Any]) -> EnvironmentResources:
    """What the program declares for dev."""
    path = specs.write(folder, specs.spec(dict(environment)))
    project, _ = load_project(path)
    assert project
    stack = {"tpucfg:spec": str(path), **{f"tpucfg:{key}": json.dumps(value) for key, value in config.items()}}
    return run_program(ROOT / "stacks", environment=project.environments["dev"], project="tpucfg", config=stack)


def sides(folder: Path, scenario: Scenario) -> tuple[ResourceChange, ...]:
    """What the program alone says."""
    base = None if scenario.before is None else made(folder, scenario.before, {})
    return program_changes(base, made(folder, scenario.after, scenario.config))


def as_previewed(changes: tuple[ResourceChange, ...]) -> list[Any]:
    """As a preview says it, which knows the project's number."""
    plain = json.dumps([change._replace(inputs=()) for change in changes])
    told = [sorted(map(repr, change.inputs)) for change in changes]
    number = str(specs.NUMBER)
    return [json.loads(plain.replace(NUMBER, number)), json.loads(json.dumps(told).replace(NUMBER, number))]


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {"spec-broken", "config-error", "protected-replacement"}))
def test_program_says_what_the_engine_says(name: str, tmp_path: Path) -> None:
    """Operation, reasons, protection, retention, access and each input are those of the real preview."""
    assert as_previewed(sides(tmp_path, SCENARIOS[name])) == as_previewed(read(name).changes)


def test_refused_move_is_told_in_full(tmp_path: Path) -> None:
    """Where the engine gives up at the first refusal, the program tells the whole move, and that it is refused."""
    changes = sides(tmp_path, SCENARIOS["protected-replacement"])
    assert count_resources(changes) == Counts(create=3, delete=3)
    assert {change.name for change in changes if change.refused} == {
        "data-us-central1",
        "tpu-agent-on-data-us-central1",
        "workload-on-data-us-central1",
    }


def test_environment_that_comes_or_goes(tmp_path: Path) -> None:
    """A side without the environment has no resources; without both there is nothing to say."""
    there = made(tmp_path, {}, {})
    assert {change.op for change in program_changes(None, there)} == {"create"}
    assert {change.op for change in program_changes(there, None)} == {"delete"}
    assert program_changes(None, None) == ()
    assert program_changes(there, there) == ()


@pytest.mark.parametrize("type_", IMMUTABLE_INPUTS)
def test_what_cannot_change_is_replaced(type_: str, tmp_path: Path) -> None:
    """A change of any fixed input is a replacement because of it; of another one, an update."""
    environment = made(tmp_path, {}, {}).environment

    def changed(key: str) -> ResourceChange:
        both = [EnvironmentResources(environment, (Resource(type_, "x", {key: it}),), {}) for it in ("a", "b")]
        [change] = program_changes(*both)
        return change

    for key in IMMUTABLE_INPUTS[type_].inputs:
        assert (changed(key).op, changed(key).because) == ("replace", (key,))
    assert (changed("labels").op, changed("labels").because) == ("update", ())
    assert IMMUTABLE_INPUTS[type_].source.startswith("https://github.com/")


def test_case_of_a_location_is_no_change(tmp_path: Path) -> None:
    """The provider keeps locations in upper case: writing one otherwise replaces nothing."""
    environment = made(tmp_path, {}, {}).environment
    both = [
        EnvironmentResources(environment, (Resource(BUCKET, "data", {"location": it}),), {})
        for it in ("us-central1", "US-CENTRAL1")
    ]
    assert program_changes(*both) == ()
