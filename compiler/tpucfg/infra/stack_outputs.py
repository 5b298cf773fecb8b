"""Comparison of a stack's outputs, `pulumi stack output --json`, with the spec."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import Finding, collect
from tpucfg.plan import bucket_of
from tpucfg.plan.identities import identities
from tpucfg.spec import Environment, Project
from tpucfg.text_format import format_value
from tpucfg.yamldoc import Document, KeyPath

SERVICE_AGENT: Final = "tpuAgent"
"""The output with the TPU service agent. The spec determines only its form: Google assigns the project's number."""
_AGENT_PATTERN: Final = re.compile(r"service-[0-9]+@cloud-tpu\.iam\.gserviceaccount\.com")
"""https://cloud.google.com/iam/docs/service-agents."""
_TENANT_AGENT_PATTERN: Final = re.compile(r"[^@ :]+@[a-z0-9.-]+\.gserviceaccount\.com")
"""The form on targets whose service has the TPUs in its own project, and chooses the account's name."""


def expected_outputs(project: Project, environment: Environment) -> Mapping[str, tuple[Any, KeyPath]]:
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
    message = f"{document.file} is not a mapping of outputs, as pulumi stack output --json prints it"
    return (Finding.of("TPU084", message, document.value_location(()), help=fix),)


def output_findings(document: Document, project: Project, environment: Environment) -> tuple[Finding, ...]:
    """Return the differences between a stack's outputs and the spec."""
    return collect([*document.findings, *_differences(document, document.data, project, environment)])


def _differences(
    document: Document, outputs: Mapping[str, Any], project: Project, environment: Environment
) -> Iterator[Finding]:
    expected = expected_outputs(project, environment)
    update = f"bring the stack up to date: pulumi up --stack {environment.name}"
    for key in (*expected, SERVICE_AGENT):
        if key not in outputs:
            message = f"the stack {environment.name} has no output {key}: its last update is incomplete or outdated"
            yield Finding.of("TPU084", message, document.key_location((key,)), help=update)
            continue
        actual = f"the stack {environment.name} has {key} {format_value(outputs[key], quoted=False)}"
        location = document.value_location((key,))
        if key == SERVICE_AGENT:
            if not _is_service_agent(outputs[key], environment):
                denied = f"jobs on {environment.target} would be denied access to the bucket"
                message = f"{actual}, which is not a TPU service agent: {denied}"
                form = "the form is service-NUMBER@cloud-tpu.iam.gserviceaccount.com, with the project's number"
                yield Finding.of("TPU084", message, location, help=update, details=(form,))
            continue
        value, path = expected[key]
        if outputs[key] != value:
            required = f"requires {key} {format_value(value, quoted=False)}"
            message = f"{actual}, but the spec {required}: jobs would use a resource that does not exist"
            fix = f"{update}; or revert the change of the spec"
            related = ((project.document.value_location(path), required),)
            yield Finding.of("TPU084", message, location, help=fix, related=related)


def _is_service_agent(account: Any, environment: Environment) -> bool:
    pattern = _TENANT_AGENT_PATTERN if TARGET_FACTS[environment.target].has_tenant_project else _AGENT_PATTERN
    return isinstance(account, str) and pattern.fullmatch(account) is not None
