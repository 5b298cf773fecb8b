"""Rules about the loss of data: what deletes objects, and what could restore them.

The ids in brackets are those of the same rules in Checkov (https://www.checkov.io/5.Policy%20Index/terraform.html) and
Trivy (https://github.com/aquasecurity/trivy-checks/tree/main/checks/cloud/google).
"""

from collections.abc import Iterator
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.infra.lifecycle import DELETE, JOBS_PREFIX, describe_reach, lifecycle_rules
from tpucfg.infra.resources import Resource, boolean, input_at, number
from tpucfg.infra.rules.common import BUCKET, PRODUCTION, label
from tpucfg.spec.project import Environment

DEFAULT_SOFT_DELETE_SECONDS: Final = 604_800
"""Seven days, for a bucket without a policy of its own: https://cloud.google.com/storage/docs/soft-delete."""


def unprotected_bucket(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a production bucket that a single command would delete, or remove from the stack.

    Reads the option `protect`. Checkov and Trivy do not see options of Pulumi; they have the like for databases
    (CKV_GCP_119 to CKV_GCP_122).
    """
    if environment.name in PRODUCTION and resource.type == BUCKET and not resource.protect:
        yield Finding.of(
            "TPU094",
            f"{label(resource)} of {environment.name} is not protected: {_destroy_effect(resource)}",
            location,
            help=f"set environments.{environment.name}.protect to true",
        )


def unprefixed_deletion(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a lifecycle rule that deletes objects of the whole bucket, data and checkpoints among them.

    Reads `lifecycleRules`: the action Delete without `matchesPrefixes`, or with a prefix that reaches the folders of
    the jobs. Rules for noncurrent versions are no finding. Checkov and Trivy have no counterpart; the closest is that
    versioning has to be enabled (CKV_GCP_78, GCP-0078).
    """
    rules = lifecycle_rules(resource.inputs) if resource.type == BUCKET else ()
    for rule in rules or ():
        if rule.action == DELETE and rule.reaches_jobs:
            template, values = describe_reach(rule)
            yield Finding.of(
                "TPU096",
                f"{label(resource)} of {environment.name} deletes {template.format(*values)} (lifecycleRules): "
                f"checkpoints below {JOBS_PREFIX} would be lost",
                location,
                help="give the rule a prefix that contains no data, such as tmp/, as matchesPrefixes in stacks/",
            )


def final_deletion(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a production bucket whose objects are deleted for good, or together with the bucket.

    Reads `softDeletePolicy.retentionDurationSeconds` and `forceDestroy`, in environments with a name of production or
    with `protect`. Checkov and Trivy have no counterpart.
    """
    if resource.type != BUCKET or not (environment.name in PRODUCTION or environment.protect):
        return
    if number(input_at(resource.inputs, ("softDeletePolicy", "retentionDurationSeconds"))) == 0:
        yield Finding.of(
            "TPU097",
            f"{label(resource)} of {environment.name} keeps no deleted objects (softDeletePolicy): none can be "
            "restored",
            location,
            help=f"set softDeletePolicy.retentionDurationSeconds to {DEFAULT_SOFT_DELETE_SECONDS} or more in stacks/",
        )
    # Without protection, TPU094 already states this effect.
    if boolean(resource.inputs.get("forceDestroy")) and resource.protect:
        yield Finding.of(
            "TPU097",
            f"{label(resource)} of {environment.name} would be deleted with all its objects (forceDestroy)",
            location,
            help="set forceDestroy to false in stacks/",
        )


def _destroy_effect(resource: Resource) -> str:
    """Return the effect of `pulumi destroy` on an unprotected bucket."""
    if resource.retain:
        return "pulumi destroy would leave it behind with its objects, and remove the jobs' access"
    force = boolean(resource.inputs.get("forceDestroy"))
    return f"pulumi destroy would delete it{' with its objects' if force else ' if empty'}"
