"""The table of rules about an environment's resources, used by `tpucfg infra`, reviews and the tests of stacks/."""

from collections.abc import Callable, Iterator
from typing import Final

from tpucfg.findings import Finding, Location, collect
from tpucfg.infra import access_rules, data_rules
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.project import Environment, Project

ResourceRule = Callable[[Resource, Environment, Location], Iterator[Finding]]
"""Yields the findings about one resource of an environment, at a location in the spec."""

RULES: Final[tuple[ResourceRule, ...]] = (
    access_rules.default_account,
    access_rules.personal_member,
    data_rules.wrong_location,
    access_rules.public_access,
    access_rules.authoritative_binding,
    data_rules.missing_project,
    data_rules.unprotected_bucket,
    access_rules.basic_role,
    data_rules.unprefixed_deletion,
    data_rules.final_deletion,
    access_rules.powerful_role,
    access_rules.account_key,
)
"""Rules applied to each resource of an environment, in the order of their ids."""


def resource_findings(declared: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """Return the findings about an environment's resources, located at the environment's key in the spec."""
    key = project.document.key_location(declared.environment.path)
    findings = (
        finding.allowed_by(project.allow)
        for rule in RULES
        for resource in declared.resources
        for finding in rule(resource, declared.environment, key)
    )
    return collect(findings)
