"""Runs of the stack program under Pulumi's mocks, for the repository's spec and for minimal ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import specs

from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.infra.stack_program import run_under_mocks
from tpucfg.spec.parse import load_project
from tpucfg.spec.project import Project

ROOT = Path(__file__).resolve().parents[2]
V5E: dict[str, Any] = {
    "sizes": ["v5litepod-4"],
    "training": {"tuned_on": "v5litepod-4", "batch_size": 8, "train_steps": 9},
}
"""Top-level keys of a spec on v5e, which gke and cloud-tpu support."""
V6E: dict[str, Any] = {
    "sizes": ["v6e-4"],
    "training": {"tuned_on": "v6e-4", "batch_size": 8, "train_steps": 9},
}
"""Top-level keys of a spec on v6e, which compute-engine supports, in us-central1."""


def project_at(path: Path) -> Project:
    """Return the project of a valid spec."""
    project, findings = load_project(path)
    assert project, findings
    return project


def declared(
    path: Path,
    stack: str = "dev",
    *,
    preview: bool = False,
    config: Mapping[str, str] | None = None,
) -> EnvironmentResources:
    """Return the resources that the program declares for one environment of a spec."""
    keys = {f"tpucfg:{key}": value for key, value in {"spec": str(path), **(config or {})}.items()}
    environment = project_at(path).environments[stack]
    return run_under_mocks(
        ROOT / "stacks", environment=environment, project="tpucfg", config=keys, preview=preview
    )


def declared_by_minimal_spec(
    folder: Path,
    environment: dict[str, Any] | None = None,
    top: dict[str, Any] | None = None,
    config: Mapping[str, str] | None = None,
) -> EnvironmentResources:
    """Return the resources that the program declares for a minimal spec."""
    return declared(specs.write(folder, specs.spec(environment, **(top or {}))), config=config)


def grants(environment: EnvironmentResources) -> set[tuple[str, str, str]]:
    """Return the short type, role and member of each grant."""
    members = [resource for resource in environment.resources if "member" in resource.inputs]
    return {
        (resource.kind, resource.inputs["role"], resource.inputs["member"]) for resource in members
    }


def only(environment: EnvironmentResources, kind: str) -> Resource:
    """Return the only resource of a type."""
    [resource] = [resource for resource in environment.resources if resource.kind == kind]
    return resource
