"""The table of rules about an environment's resources, used by `tpucfg infra`, reviews and the tests of stacks/."""

from typing import Final

from tpucfg.findings import Finding, collect
from tpucfg.infra.resources import EnvironmentResources
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
        for finding in rule(resource, declared.environment, key)
    )
    return collect(findings)
