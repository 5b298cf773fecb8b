"""The outputs of a stack beside what the spec says: where reality and spec differ."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.findings import Finding, collect
from tpucfg.plan.naming import bucket_of, workload_account
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import format_value
from tpucfg.yamldoc.document import Document, KeyPath

AGENT: Final = "tpuAgent"
"""The one output that the spec does not foretell whole: Google gives the project its number."""
_AGENTS: Final = {"ai-platform": re.compile(r"[^@ :]+@[a-z0-9.-]+\.gserviceaccount\.com")}
"""By target, what an agent is called; the service of this one says a name of its own."""
_AGENT: Final = re.compile(r"service-[0-9]+@cloud-tpu\.iam\.gserviceaccount\.com")
"""https://cloud.google.com/iam/docs/service-agents."""


def expected_outputs(project: Project, environment: Environment) -> Mapping[str, tuple[str, KeyPath]]:
    """Each output that the spec foretells, with the path of the spec that decides it."""
    bucket, path = bucket_of(project, environment), environment.path
    bucket_path: KeyPath = (*path, "bucket" if environment.bucket else "region")
    return {
        "bucket": (bucket, bucket_path),
        "bucketUrl": (f"gs://{bucket}", bucket_path),
        "region": (environment.region, (*path, "region")),
        "project": (environment.project, (*path, "project")),
        "workloadServiceAccount": (workload_account(project, environment), path),
    }


def environment_of(document: Document, project: Project) -> Environment | None:
    """The environment whose stack has these outputs, found by what no two environments share; None where none is."""
    outputs = document.data if isinstance(document.data, dict) else {}
    for key in ("bucket", "workloadServiceAccount"):
        for environment in project.environments.values():
            if outputs.get(key) == expected_outputs(project, environment)[key][0]:
                return environment
    return None


def unreadable_outputs(document: Document) -> tuple[Finding, ...]:
    """Why the text cannot be outputs at all; nothing where it can."""
    fix = "write it anew: pulumi stack output --json --stack ENV > FILE"
    if document.root is None:
        return tuple(finding._replace(help=fix) for finding in document.findings)
    if isinstance(document.data, dict):
        return ()
    message = f"{document.file} is not what pulumi stack output --json prints: a mapping of outputs"
    return (Finding.of("TPU084", message, document.value_location(()), help=fix),)


def output_findings(document: Document, project: Project, environment: Environment) -> tuple[Finding, ...]:
    """Where the outputs, from `pulumi stack output --json`, differ from the spec."""
    return collect([*document.findings, *_differences(document, document.data, project, environment)])


def _differences(
    document: Document, outputs: Mapping[str, Any], project: Project, environment: Environment
) -> Iterator[Finding]:
    wanted = expected_outputs(project, environment)
    yield from _agent(document, outputs, environment)
    for key in (*wanted, AGENT):
        if key not in outputs:
            message = f"the stack {environment.name} has no output {key}: it was never made to its end, or long ago"
            yield Finding.of("TPU084", message, document.key_location((key,)), help=_up(environment))
    for key, (value, path) in wanted.items():
        if key in outputs and outputs[key] != value:
            yield Finding.of(
                "TPU084",
                f"the stack {environment.name} has {key} {format_value(outputs[key], quoted=False)}, and the spec says "
                f"{value}: jobs would look for what is not there",
                document.value_location((key,)),
                help=f"{_up(environment)}; or take the change of the spec back",
                related=((project.document.value_location(path), f"makes {key} {value}"),),
            )


def _agent(document: Document, outputs: Mapping[str, Any], environment: Environment) -> Iterator[Finding]:
    found = outputs.get(AGENT, "")
    wanted = _AGENTS.get(environment.target, _AGENT)
    if AGENT in outputs and not (isinstance(found, str) and wanted.fullmatch(found)):
        message = (
            f"the stack {environment.name} has {AGENT} {format_value(found, quoted=False)}, which is no agent of Google's "
            f"TPUs: jobs on {environment.target} would find the bucket closed"
        )
        details = ("Google calls it service-NUMBER@cloud-tpu.iam.gserviceaccount.com, by the project's number",)
        yield Finding.of("TPU084", message, document.value_location((AGENT,)), help=_up(environment), details=details)


def _up(environment: Environment) -> str:
    return f"bring the stack up to date: pulumi up --stack {environment.name}"
