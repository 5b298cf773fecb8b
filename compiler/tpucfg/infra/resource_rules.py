"""Rules about the resources of an environment: access, deletion, recovery, locations; and the outputs of its stack.

`tpucfg infra`, reviews and the tests of stacks/ apply them. The ids in brackets are those of the same rules in Checkov
(https://www.checkov.io/5.Policy%20Index/terraform.html) and Trivy
(https://github.com/aquasecurity/trivy-checks/tree/main/checks/cloud/google); a rule without one has no counterpart.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import Finding, collect
from tpucfg.infra.grants import (
    BASIC_ROLES,
    Grant,
    grants_of,
    is_grant,
    is_powerful,
    permissions_of,
    public_names,
)
from tpucfg.infra.resources import BUCKET, EnvironmentResources, Resource, boolean, input_at, number
from tpucfg.plan import bucket_of
from tpucfg.plan.identities import identities
from tpucfg.spec import Environment, Project
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc import Document, KeyPath

PRODUCTION: Final = ("prod", "production", "live")
"""Names of environments whose data needs protection."""
DEFAULT_SOFT_DELETE_SECONDS: Final = 604_800
"""Seven days, for a bucket without a policy of its own: https://cloud.google.com/storage/docs/soft-delete."""
_EXCEPTION: Final = "roles/ml.serviceAgent"
"""The one role for service agents that the stack grants, on the target ai-platform only, whose guide requires it:
docs/bootstrap.md lists what it allows. The review still shows the grant."""
_WIDE_TARGETS: Final = ("project", "folder", "org")
"""Objects that contain every bucket and account of a project."""
_POWER: Final = "act as every service account in it, or grant access in it to anyone"
_DEFAULT_ACCOUNT: Final = re.compile(
    r"serviceAccount:.*(-compute@developer|@appspot|@cloudbuild|@cloudservices)\.gserviceaccount\.com"
)
"""Accounts that Google creates in a project and that everything without its own account runs as:
https://cloud.google.com/iam/docs/service-account-types#default."""
_PARENT_KEYS: Final = (
    "project",
    "bucket",
    "serviceAccountId",
    "folder",
    "orgId",
    "billingAccountId",
    "cryptoKeyId",
    "parent",
)
"""Inputs that name the project or another parent; each type of Google's provider has one of them."""


class Violation(NamedTuple):
    """A rule that a resource breaks."""

    id: str
    text: str
    """The effect of the resource, after its name."""
    help: str


def resource_findings(declared: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """Return the findings about an environment's resources, located at the environment's key in the spec."""
    environment = declared.environment
    key = project.document.key_location(environment.path)
    return collect(
        Finding.of(
            id_, f"{resource.label} of {environment.name} {text}", key, help=help_
        ).allowed_by(project.allow)
        for resource in declared.resources
        for rules in _RULES
        for id_, text, help_ in rules(resource, environment)
    )


# Grants


def _grant_violations(resource: Resource, environment: Environment) -> Iterator[Violation]:
    for name, key in public_names(resource):  # CKV_GCP_28; GCP-0001
        text = f"names everyone, through {name}, in {key}"
        yield Violation("TPU091", text, "name the people, groups or accounts that need it")
    for grant in grants_of(resource):
        for id_, reason, help_ in _grant_problems(grant, environment):
            yield Violation(id_, f"grants {grant.text}{reason}", help_)


def _grant_problems(grant: Grant, environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Yield the id of each rule that a grant breaks, the reason and the edit."""
    if _DEFAULT_ACCOUNT.fullmatch(
        grant.member
    ):  # CKV_GCP_46 to CKV_GCP_48; GCP-0004, GCP-0006, GCP-0008
        reason = ", a default account that everything without an account of its own runs as"
        yield "TPU088", reason, "grant it to an account that only these jobs run as"
    if grant.member.casefold().startswith("user:"):  # GCP-0003, GCP-0069
        yield (
            "TPU089",
            ", a person and not a group",
            "grant it to a group, so that access ends with the membership",
        )
    if grant.role in BASIC_ROLES:  # CKV_GCP_115 to CKV_GCP_117; GCP-0007
        yield (
            "TPU095",
            ": the role has thousands of permissions",
            "grant a role of the one service that is used",
        )
    # CKV_GCP_41, CKV_GCP_42, CKV_GCP_44, CKV_GCP_45, CKV_GCP_49; GCP-0005, GCP-0007, GCP-0009, GCP-0011
    is_exception = grant.role == _EXCEPTION and TARGET_FACTS[environment.target].has_tenant_project
    if grant.on.kind in _WIDE_TARGETS and is_powerful(grant.role) and not is_exception:
        fix = "grant the role on the one account or bucket that is used, or a narrower role"
        yield "TPU098", f", who can then {_POWER}", fix


# Roles and locations


def _role_violations(resource: Resource, _: Environment) -> Iterator[Violation]:
    if names := list(filter(is_powerful, permissions_of(resource))):
        text = f"has {listed(names)}: a member with the role on a project can {_POWER}"
        yield Violation("TPU098", text, "leave the permission out of the role")


def _location_violations(resource: Resource, environment: Environment) -> Iterator[Violation]:
    # A repository of images may be elsewhere, such as in `us`: each host pulls once.
    for key in () if is_grant(resource) else ("location", "region"):
        value = resource.inputs.get(key)
        if isinstance(value, str) and value.lower() not in {environment.region, "global"}:
            text = f"is in {value}, but the TPUs are in {environment.region}"
            yield Violation(
                "TPU090", text, "take the location from the environment's region in stacks/"
            )
    if resource.type.startswith("gcp:") and not any(
        resource.inputs.get(key) for key in _PARENT_KEYS
    ):
        text = "has no project: it would be created in the caller's default project"
        yield Violation("TPU093", text, "pass project in stacks/")


# Buckets


def _bucket_violations(resource: Resource, environment: Environment) -> Iterator[Violation]:
    if resource.type != BUCKET:
        return
    # CKV_GCP_29, CKV_GCP_114; GCP-0002
    for key, value in (("publicAccessPrevention", "enforced"), ("uniformBucketLevelAccess", True)):
        if resource.inputs.get(key) != value:
            text = (
                f"has {key} {format_value(resource.inputs.get(key))}: objects could be made public"
            )
            yield Violation("TPU091", text, f"set {key} to {format_value(value)} in stacks/")
    for rule in lifecycle_rules(resource.inputs) or ():
        if rule.deletes_jobs:
            text = (
                f"has the lifecycle rule {rule.text}: checkpoints below {JOBS_PREFIX} would be lost"
            )
            fix = "give the rule a prefix that contains no data, such as tmp/, as matchesPrefixes in stacks/"
            yield Violation("TPU096", text, fix)
    is_production = environment.name in PRODUCTION
    if is_production and not resource.protect:
        fix = f"set environments.{environment.name}.protect to true"
        text = "is not protected: pulumi destroy would delete it, or leave it behind without the jobs' access"
        yield Violation("TPU094", text, fix)
    if is_production or environment.protect:
        yield from _final_deletions(resource)


def _final_deletions(resource: Resource) -> Iterator[Violation]:
    if number(input_at(resource.inputs, ("softDeletePolicy", "retentionDurationSeconds"))) == 0:
        fix = f"set softDeletePolicy.retentionDurationSeconds to {DEFAULT_SOFT_DELETE_SECONDS} or more in stacks/"
        yield Violation(
            "TPU097", "keeps no deleted objects (softDeletePolicy): none can be restored", fix
        )
    # Without protection, TPU094 already states this effect.
    if boolean(resource.inputs.get("forceDestroy")) and resource.protect:
        text = "would be deleted with all its objects (forceDestroy)"
        yield Violation("TPU097", text, "set forceDestroy to false in stacks/")


_RULES: Final = (_grant_violations, _role_violations, _location_violations, _bucket_violations)


# The lifecycle rules of a bucket.

ABORT_UPLOAD: Final = "AbortIncompleteMultipartUpload"
JOBS_PREFIX: Final = "jobs/"
"""Below it are the folders of all jobs, with their checkpoints."""
MAX_RULES: Final = 100
"""Google's limit for one bucket: https://cloud.google.com/storage/quotas#buckets."""
_MINIMUMS: Final = (
    "age",
    "daysSinceCustomTime",
    "daysSinceNoncurrentTime",
    "numNewerVersions",
    "sizeAboveBytes",
)
"""Conditions that reach fewer objects the higher they are."""
_NONCURRENT: Final = ("daysSinceNoncurrentTime", "noncurrentTimeBefore", "numNewerVersions")
"""Conditions that only a noncurrent version can satisfy."""


class LifecycleRule(NamedTuple):
    """One rule of a bucket."""

    action: str
    """The action, with the class to which it moves objects: `Delete`, `SetStorageClass ARCHIVE`."""
    conditions: Mapping[str, Any]
    """Those with a value; the provider leaves out a zero, and its own switches restrict nothing."""

    @property
    def text(self) -> str:
        """The rule in Google's words: `Delete: age 14, matchesPrefixes tmp/`."""
        reach = (
            ["every object"]
            if "" in self._prefixes and "matchesSuffixes" not in self.conditions
            else []
        )
        conditions = (f"{key} {listed(_texts(value))}" for key, value in self.conditions.items())
        return f"{self.action}: {', '.join([*reach, *conditions])}"

    @property
    def deletes_jobs(self) -> bool:
        """True if the rule deletes the current objects of every job."""
        is_noncurrent = any(key in self.conditions for key in _NONCURRENT)
        is_current = not is_noncurrent and self.conditions.get("withState") != "ARCHIVED"
        return (
            self.action == "Delete"
            and is_current
            and any(map(JOBS_PREFIX.startswith, self._prefixes))
        )

    @property
    def _prefixes(self) -> tuple[str, ...]:
        return _texts(self.conditions.get("matchesPrefixes", ""))


def lifecycle_rules(inputs: Mapping[str, Any]) -> tuple[LifecycleRule, ...] | None:
    """Return the rules of a bucket; None if they are not known."""
    rules = inputs.get("lifecycleRules")
    if rules is None:
        return ()
    if (
        not isinstance(rules, list)
        or len(rules) > MAX_RULES
        or not all(isinstance(rule, dict) for rule in rules)
    ):
        return None
    parts = [(rule.get("action"), rule.get("condition") or {}) for rule in rules]
    if not all(isinstance(part, dict) for pair in parts for part in pair):
        return None
    return tuple(
        LifecycleRule(
            f"{action.get('type')} {action.get('storageClass') or ''}".strip(),
            {
                key: number(value)
                for key, value in condition.items()
                if number(value) and not isinstance(value, bool)
            },
        )
        for action, condition in parts
    )


def covers(rule: LifecycleRule, other: LifecycleRule) -> bool:
    """Return True if the rule does to every object what the other rule does to it, and no later."""
    return rule.action == other.action and all(
        value == other.conditions.get(key) or _is_less(key, value, other.conditions.get(key))
        for key, value in rule.conditions.items()
    )


def _is_less(key: str, value: Any, other: Any) -> bool:
    return key in _MINIMUMS and isinstance(value, int) and isinstance(other, int) and value < other


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


# The outputs of a stack, `pulumi stack output --json`, compared with the spec


def expected_outputs(
    project: Project, environment: Environment
) -> Mapping[str, tuple[Any, KeyPath]]:
    """Return each output that the spec determines, with the spec path that it follows from."""
    accounts = list(dict.fromkeys(identity.email for identity in identities(project, environment)))
    bucket, path = bucket_of(project, environment), environment.path
    bucket_path: KeyPath = (*path, "bucket" if environment.bucket else "region")
    return {
        "bucket": (bucket, bucket_path),
        "bucketUrl": (f"gs://{bucket}", bucket_path),
        "region": (environment.region, (*path, "region")),
        "project": (environment.project, (*path, "project")),
        "workloadServiceAccount": (accounts[0], path),
        # Only where layers give a size an account of its own.
        **({"workloadServiceAccounts": (accounts, path)} if len(accounts) > 1 else {}),
    }


def environment_of(document: Document, project: Project) -> Environment | None:
    """Return the environment whose bucket or account is in the outputs; None if no environment matches.

    Bucket and account are unique to an environment; a region or project may be shared.
    """
    outputs = document.data if isinstance(document.data, dict) else {}
    for key in ("bucket", "workloadServiceAccount"):
        for environment in project.environments.values():
            if outputs.get(key) == expected_outputs(project, environment)[key][0]:
                return environment
    return None


def unreadable_outputs(document: Document) -> tuple[Finding, ...]:
    """Return the findings of a file that does not contain outputs at all."""
    fix = "write it anew: pulumi stack output --json --stack ENV > FILE"
    if document.root is None:
        return tuple(finding._replace(help=fix) for finding in document.findings)
    if isinstance(document.data, dict):
        return ()
    message = (
        f"{document.file} is not a mapping of outputs, as pulumi stack output --json prints it"
    )
    return (Finding.of("TPU084", message, document.value_location(()), help=fix),)


def output_findings(
    document: Document, project: Project, environment: Environment
) -> tuple[Finding, ...]:
    """Return the differences between a stack's outputs and the spec."""
    return collect(
        [*document.findings, *_differences(document, document.data, project, environment)]
    )


def _differences(
    document: Document, outputs: Mapping[str, Any], project: Project, environment: Environment
) -> Iterator[Finding]:
    expected = expected_outputs(project, environment)
    update = f"bring the stack up to date: pulumi up --stack {environment.name}"
    for key, (value, path) in expected.items():
        if key not in outputs:
            message = f"the stack {environment.name} has no output {key}: its last update is incomplete or outdated"
            yield Finding.of("TPU084", message, document.key_location((key,)), help=update)
            continue
        actual = (
            f"the stack {environment.name} has {key} {format_value(outputs[key], quoted=False)}"
        )
        location = document.value_location((key,))
        if outputs[key] != value:
            required = f"requires {key} {format_value(value, quoted=False)}"
            message = (
                f"{actual}, but the spec {required}: jobs would use a resource that does not exist"
            )
            fix = f"{update}; or revert the change of the spec"
            related = ((project.document.value_location(path), required),)
            yield Finding.of("TPU084", message, location, help=fix, related=related)
