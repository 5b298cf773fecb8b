"""Changes computed from the stack programs, compared with the engine's previews of the same changes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import specs
from preview_scenarios import SCENARIOS, Scenario

from recorded_previews import read
from spec_factory import ROOT
from tpucfg.changes.resource_diff import complete_preview, program_changes
from tpucfg.changes.resources import KNOWN_TYPES, ResourceChange, count_phrases
from tpucfg.infra.resources import BUCKET, EnvironmentResources, Resource
from tpucfg.infra.stack_program import run_under_mocks
from tpucfg.spec.parse import load_project

PROJECT_NUMBER = f"[number of {specs.PROJECT}]"
"""Placeholder of the number of the Google Cloud project, which only a preview with credentials knows."""


def declared(
    folder: Path, environment: Mapping[str, Any], config: Mapping[str, Any]
) -> EnvironmentResources:
    """Return the resources that the program declares for dev."""
    path = specs.write(folder, specs.spec(dict(environment)))
    project, _ = load_project(path)
    assert project
    stack = {
        "tpucfg:spec": str(path),
        **{f"tpucfg:{key}": json.dumps(value) for key, value in config.items()},
    }
    return run_under_mocks(
        ROOT / "stacks", environment=project.environments["dev"], project="tpucfg", config=stack
    )


def changes_of(folder: Path, scenario: Scenario) -> tuple[ResourceChange, ...]:
    """Return the changes of a scenario, computed from the programs alone."""
    base = None if scenario.before is None else declared(folder, scenario.before, {})
    return program_changes(base, declared(folder, scenario.after, scenario.config))


def as_previewed(changes: tuple[ResourceChange, ...]) -> list[Any]:
    """Return the changes as plain data, with the project's number as a preview has it."""
    fields = json.dumps([change._replace(inputs=()) for change in changes])
    inputs = json.dumps([sorted(map(repr, change.inputs)) for change in changes])
    return [
        json.loads(text.replace(PROJECT_NUMBER, str(specs.NUMBER))) for text in (fields, inputs)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(SCENARIOS.keys() - {"spec-broken", "config-error", "protected-replacement"})
)
def test_program_and_engine_agree(name: str, tmp_path: Path) -> None:
    """Operation, reasons, protection, retention, access and each input are those of the engine's preview."""
    declared_changes, previewed = changes_of(tmp_path, SCENARIOS[name]), read(name).changes
    assert as_previewed(declared_changes) == as_previewed(previewed)
    assert complete_preview(previewed, declared_changes) == previewed


def test_refused_move_is_complete(tmp_path: Path) -> None:
    """The engine stops at the first refusal, but the programs show the whole move, and that it is refused."""
    changes = changes_of(tmp_path, SCENARIOS["protected-replacement"])
    assert {(4, "created"), (4, "deleted")} <= {*count_phrases(changes)}
    assert {change.name for change in changes if change.refused} == {
        "data-acme-dev-mnist-dev-us-central1",
        "tpu-agent-on-data-acme-dev-mnist-dev-us-central1",
        "workload-on-data-acme-dev-mnist-dev-us-central1",
        "workload-on-properties-of-data-acme-dev-mnist-dev-us-central1",
    }


def test_missing_environment_has_no_resources(tmp_path: Path) -> None:
    """All resources of an added environment are created, and those of a removed one deleted."""
    dev = declared(tmp_path, {}, {})
    assert {change.op for change in program_changes(None, dev)} == {"create"}
    assert {change.op for change in program_changes(dev, None)} == {"delete"}
    assert program_changes(None, None) == ()
    assert program_changes(dev, dev) == ()


@pytest.mark.parametrize("type_", KNOWN_TYPES)
def test_immutable_input_forces_a_replacement(type_: str, tmp_path: Path) -> None:
    """A change of an immutable input replaces the resource because of it; any other change updates it."""
    environment = declared(tmp_path, {}, {}).environment

    def changed(key: str) -> ResourceChange:
        before, after = (
            EnvironmentResources(environment, (Resource(type_, "x", {key: value}),), {})
            for value in ("a", "b")
        )
        [change] = program_changes(before, after)
        return change

    for key in KNOWN_TYPES[type_]:
        assert (changed(key).op, changed(key).because) == ("replace", (key,))
    assert (changed("labels").op, changed("labels").because) == ("update", ())


def test_case_of_a_location_is_no_change(tmp_path: Path) -> None:
    """The provider stores locations in upper case, so another case replaces nothing."""
    environment = declared(tmp_path, {}, {}).environment
    before, after = (
        EnvironmentResources(environment, (Resource(BUCKET, "data", {"location": location}),), {})
        for location in ("us-central1", "US-CENTRAL1")
    )
    assert program_changes(before, after) == ()
