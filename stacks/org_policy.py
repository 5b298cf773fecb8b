"""Refusals that no role ends: a policy of the organization, or a perimeter around the project."""

import re
from typing import Final

from api_error import Refusal
from settings import Settings

CONSTRAINT: Final = re.compile(r"\bconstraints/([a-z][A-Za-z.]*[A-Za-z])|(do not belong to a permitted customer)")
"""How a policy says its name, and the one that may keep it to itself. Such refusals, as they were met:

- https://github.com/PaloAltoNetworks/terraform-google-vmseries-modules/issues/148 (412, where a bucket may be)
- https://github.com/terraform-google-modules/terraform-example-foundation/issues/1454 (400, who may be granted a role)
- https://github.com/googlemaps/js-route-optimization-app/issues/198 (400, the same without the name)
"""
PERIMETER: Final = re.compile(r"vpcServiceControlsUniqueIdentifier(?:: (\S+))?|SECURITY_POLICY_VIOLATED")
"""https://github.com/terraform-google-modules/terraform-example-foundation/issues/974 (403)."""


def policy(refusal: Refusal, settings: Settings) -> str:
    """A constraint of the organization: what it allows can be looked up, and only its administrator changes it."""
    found = CONSTRAINT.search(refusal.error)
    constraint = (found and found[1]) or "iam.allowedPolicyMemberDomains"
    own = {
        "gcp.resourceLocations": f"set environments.{settings.environment}.region to a region that it allows",
        "iam.disableServiceAccountCreation": (
            f"name an account that exists with targets.{settings.target}.service_account in the spec"
        ),
    }
    way = f"{own[constraint]}, or ask" if constraint in own else "ask"
    return (
        f"the organization's policy {constraint} does not allow this in {settings.project}: {refusal.consequence}.\n"
        f"help: see what it allows: gcloud org-policies describe {constraint} --project={settings.project} "
        f"--effective; {way} whoever administers the organization for an exception, then: {refusal.again(settings)}"
    )


def perimeter(refusal: Refusal, settings: Settings) -> str:
    """VPC Service Controls: who calls may have every role, and calls from outside."""
    found = PERIMETER.search(refusal.error)
    identifier = f", with the identifier {found[1]}" if found and found[1] else ""
    return (
        f"a perimeter of VPC Service Controls around {settings.project} refuses calls from where pulumi runs: "
        f"{refusal.consequence}. No role changes that.\n"
        "help: run pulumi from inside the perimeter, or ask whoever administers it for an ingress rule"
        f"{identifier}: https://cloud.google.com/vpc-service-controls/docs/troubleshooting; then: "
        f"{refusal.again(settings)}"
    )
