"""Errors that no role fixes: a constraint of the organization, or a service perimeter around the project."""

import re
from typing import Final

from tpucfg.stack.api_error import ApiError
from tpucfg.stack.settings import StackSettings

CONSTRAINT: Final = re.compile(
    r"\bconstraints/([a-z][A-Za-z.]*[A-Za-z])|(do not belong to a permitted customer)"
)
"""The name of a constraint, and the one error that may omit it. Examples:

- https://github.com/PaloAltoNetworks/terraform-google-vmseries-modules/issues/148 (412, a bucket's location)
- https://github.com/terraform-google-modules/terraform-example-foundation/issues/1454 (400, members of a role)
- https://github.com/googlemaps/js-route-optimization-app/issues/198 (400, members of a role, without the name)
"""
PERIMETER: Final = re.compile(
    r"vpcServiceControlsUniqueIdentifier(?:: (\S+))?|SECURITY_POLICY_VIOLATED"
)
"""https://github.com/terraform-google-modules/terraform-example-foundation/issues/974 (403)."""


def constraint_help(error: ApiError, settings: StackSettings) -> str:
    """Explain a constraint of the organization, which only its administrator can change."""
    match = CONSTRAINT.search(error.message)
    constraint = (match and match[1]) or "iam.allowedPolicyMemberDomains"
    workarounds = {
        "gcp.resourceLocations": f"set environments.{settings.environment}.region to a region that it allows",
        "iam.disableServiceAccountCreation": (
            f"name an existing account with targets.{settings.target}.service_account in the spec"
        ),
    }
    fix = f"{workarounds[constraint]}, or ask" if constraint in workarounds else "ask"
    return (
        f"the organization's policy {constraint} does not allow this in {settings.project}: {error.consequence}.\n"
        f"help: show what it allows: gcloud org-policies describe {constraint} --project={settings.project} "
        f"--effective; {fix} the organization's administrator for an exception, then: {error.retry_command(settings)}"
    )


def perimeter_help(error: ApiError, settings: StackSettings) -> str:
    """Explain VPC Service Controls, which reject calls from outside the perimeter with any role."""
    match = PERIMETER.search(error.message)
    identifier = f", with the identifier {match[1]}" if match and match[1] else ""
    return (
        f"a perimeter of VPC Service Controls around {settings.project} rejects calls from this machine: "
        f"{error.consequence}. No role changes that.\n"
        "help: run pulumi inside the perimeter, or ask its administrator for an ingress rule"
        f"{identifier}: https://cloud.google.com/vpc-service-controls/docs/troubleshooting; then: "
        f"{error.retry_command(settings)}"
    )
