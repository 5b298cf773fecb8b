"""The config of a stack: the stack file's values, over those that the project file sets for all stacks."""

import json
from pathlib import Path
from typing import Any

import pytest

from tpucfg.infra.stack_files import effective_config, pulumi_project, stack_config
from tpucfg.yamldoc.reader import read_text


def config_of(
    folder: Path, project: dict[str, Any], stack: dict[str, Any] | None = None
) -> dict[str, str]:
    """Return the config of the stack dev in a project called p."""
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "p", "config": project}))
    if stack is not None:
        (folder / "Pulumi.dev.yaml").write_text(json.dumps({"config": stack}))
    pulumi = pulumi_project(folder)
    assert pulumi
    return effective_config(pulumi, "dev")


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"a": {"type": "string", "default": "x"}}, {"p:a": "x"}),
        ({"a": {"default": ["x"]}}, {"p:a": '["x"]'}),
        ({"a": {"default": {"x": 1}}}, {"p:a": '{"x": 1}'}),
        ({"a": ["x"]}, {"p:a": '["x"]'}),
        ({"a": "x", "p:b": True, "c": 7}, {"p:a": "x", "p:b": "true", "p:c": "7"}),
        ({"gcp:zone": {"value": "z"}}, {"gcp:zone": "z"}),
        ({"gcp:zone": "z"}, {"gcp:zone": "z"}),
        ({"a": {"type": "string"}}, {}),
        ({"a": {"default": ""}}, {"p:a": ""}),
    ],
)
def test_project_file_sets_values_for_all_stacks(
    tmp_path: Path, declared: dict[str, Any], expected: dict[str, str]
) -> None:
    """Defaults, values and their short forms apply without a stack file, as the engine applies them."""
    assert config_of(tmp_path, declared) == expected


def test_stack_file_wins(tmp_path: Path) -> None:
    """A value in the stack file hides that of the project file, even if it is empty."""
    declared = {"a": "d", "b": "d", "gcp:zone": "d", "e": "d"}
    stack = {"a": "s", "p:b": "s", "gcp:zone": "s", "e": None}
    assert config_of(tmp_path, declared, stack) == {
        "p:a": "s",
        "p:b": "s",
        "gcp:zone": "s",
        "p:e": "",
    }


@pytest.mark.parametrize(
    "value", [{"secure": "v1:a"}, [{"secure": "v1:a"}], {"x": {"secure": "v1:a"}}]
)
def test_encrypted_value_is_not_passed(tmp_path: Path, value: object) -> None:
    """A value that is encrypted, or a part of it, is left out; it still hides the default."""
    assert config_of(tmp_path, {"a": "d"}, {"a": value}) == {}
    pulumi = pulumi_project(tmp_path)
    assert pulumi
    document = read_text(json.dumps({"config": {"a": value}}), "Pulumi.dev.yaml")
    assert stack_config(pulumi, document)["p:a"].is_encrypted


def test_mapping_with_more_keys_is_not_encrypted(tmp_path: Path) -> None:
    """Only a mapping with the single key `secure` is an encrypted value."""
    assert config_of(tmp_path, {}, {"a": {"secure": "x", "b": 1}}) == {
        "p:a": '{"secure": "x", "b": 1}'
    }
