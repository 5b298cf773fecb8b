"""The table of rules about an environment's resources, used by `tpucfg infra`, reviews and the tests of stacks/."""

from collections.abc import Iterator
from typing import Final

from tpucfg.findings import Finding, collect
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.infra.rules import access, data_loss, location
from tpucfg.infra.rules.common import ResourceRule
from tpucfg.spec.project import Project

RULES: Final[tuple[ResourceRule, ...]] = (
    access.default_account,
    access.personal_member,
    location.wrong_location,
    access.public_access,
    access.authoritative_binding,
    location.missing_project,
    data_loss.unprotected_bucket,
    access.basic_role,
    data_loss.unprefixed_deletion,
    data_loss.final_deletion,
    access.powerful_role,
    access.account_key,
)
"""Rules applied to each resource of an environment, in the order of their ids."""


def resource_findings(declared: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """Return the findings about an environment's resources, located at the environment's key in the spec."""
    key = project.document.key_location(declared.environment.path)
    findings = (
        finding.allowed_by(project.allow)
        for rule in RULES
        for resource in declared.resources
        for finding in _shown(rule(resource, declared.environment, key), resource)
    )
    return collect(findings)


def _shown(findings: Iterator[Finding], resource: Resource) -> Iterator[Finding]:
    """Yield the findings without the values that the program wraps as secrets, by which rules judge it."""
    if not resource.hidden_inputs:
        return findings
    return (finding._replace(message=resource.hide_secrets(finding.message)) for finding in findings)
