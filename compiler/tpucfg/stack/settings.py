"""Settings of one stack as frozen values: the spec's environment, and what stack config adds.

Every name comes from the compiler, which writes the same names into the configs. Nothing here calls Google.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, errors
from tpucfg.findings.text import report
from tpucfg.infra import file_findings, is_known, project_findings, pulumi_project
from tpucfg.infra.spec_errors import stopping_errors
from tpucfg.plan import Job, Selection, environment_labels, make_job
from tpucfg.plan.identities import (
    Identity,
    ImagePull,
    deletes_its_slice,
    deletion_condition,
    deletion_permissions,
    identities,
    image_pulls,
)
from tpucfg.plan.naming import account_id, bucket_of, deletion_role_id
from tpucfg.plan.rung import make_rung
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.rules import long_account_id
from tpucfg.yamldoc.reader import read_file


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """The values of stack config; an empty text is a value that is not set."""

    project_number: str = ""
    bucket_members: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    """The members whose grants are revoked although other stacks may declare them."""
    service_account_project: str = ""
    tpu_service_account: str = ""
    deletion_role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSettings:
    """Everything that the resources of one environment depend on."""

    environment: str
    """The environment's name, which is the stack's name too."""
    project: str
    """The Google project's id."""
    region: str
    target: str
    bucket: str
    labels: Mapping[str, str]
    protect: bool
    keep_data: bool
    """The bucket is left behind with its objects when the stack no longer declares it."""
    creates_bucket: bool
    """False if the bucket exists already: the stack reads it, and grants access to it."""
    kms_key: str
    """The Cloud KMS key that encrypts the bucket; empty for Google's own."""
    soft_delete_days: int
    reads: tuple[str, ...]
    """The URLs of other buckets that the jobs read."""
    image_pulls: tuple[ImagePull, ...]
    """The accounts that pull the jobs' images, each with the repository."""
    cluster_project: str
    """The Google project of the cluster, whose identity pool the pods' accounts are in."""
    identities: tuple[Identity, ...]
    """The accounts that the jobs run as, with the access that they need; at least one."""
    account_id: str
    """Id of the account that the stack creates, if an identity is that account."""
    deletion_role_id: str
    """Id of the custom role with which jobs delete their own slices."""
    deletion_permissions: tuple[str, ...]
    """The permissions of that role; empty if no job deletes its slice."""
    deletion_condition: str | None
    """The condition of the role's grants; None if they reach the whole project."""
    config: StackConfig

    @property
    def account(self) -> str:
        """The e-mail of the account that the jobs run as, unless the spec gives a size one of its own."""
        return self.identities[0].email

    @property
    def accounts(self) -> tuple[str, ...]:
        """The e-mail of each account that jobs run as."""
        return tuple(dict.fromkeys(identity.email for identity in self.identities))


def read_settings() -> StackSettings:
    """Return the settings of the current stack.

    Raises:
        pulumi.RunError: The stack file or the spec is invalid; the message names the fix.
    """
    # Only the Automation API, which runs a program inline, passes no folder.
    root, stack = Path(pulumi.get_root_directory() or Path.cwd()), pulumi.get_stack()
    _check_config(root, stack)
    config = pulumi.Config()
    path = root / (config.get("spec") or "tpucfg.yaml")
    return settings_of(_read_project(path, root, stack), stack, _stack_config(config))


def settings_of(project: Project, stack: str, config: StackConfig) -> StackSettings:
    """Return the settings of one environment of a project.

    Raises:
        pulumi.RunError: The spec has no such environment, or an error about it.
    """
    file = project.document.file
    if stack not in project.environments:
        raise _run_error(
            f"{file} has no environment {stack}, and a stack has the name of its environment: {stack} has no resources",
            f"add environments.{stack} to {file}, or select the stack of an existing environment"
            f" ({', '.join(project.environments)}): pulumi stack select {next(iter(project.environments))}",
        )
    environment = project.environments[stack]
    owned = identities(project, environment)
    _check_environment(
        project, environment, creates_account=any(identity.is_created for identity in owned)
    )
    jobs = [*_jobs(project, environment)]
    deleting = [job for job in jobs if deletes_its_slice(job.target, job.settings)]
    _check_members(stack, owned, config)
    return StackSettings(
        environment=stack,
        project=environment.project,
        region=environment.region,
        target=environment.target,
        bucket=bucket_of(project, environment),
        labels=environment_labels(project.name, environment),
        protect=environment.protect,
        keep_data=environment.keep_data,
        creates_bucket=environment.creates_bucket,
        kms_key=environment.kms_key or "",
        soft_delete_days=environment.deleted_days,
        reads=tuple(environment.reads),
        image_pulls=image_pulls(jobs),
        cluster_project=environment.cluster.project if environment.cluster else environment.project,
        identities=owned,
        account_id=account_id(name=project.name, environment=stack),
        deletion_role_id=deletion_role_id(name=project.name, environment=stack),
        deletion_permissions=deletion_permissions(
            environment.target, [job.slice.hosts for job in deleting]
        ),
        deletion_condition=deletion_condition(
            environment.target, [job.name for job in deleting if job.slice.hosts == 1]
        ),
        config=config,
    )


def _check_environment(
    project: Project, environment: Environment, *, creates_account: bool
) -> None:
    """Check only the stack's own environment: another team's error must not block this one's update."""
    compiled = compile_project(project, Catalog(), Selection(environments=(environment.name,)))
    account_findings = long_account_id(project, environment) if creates_account else ()
    # Without duplicates: on some targets, compiling reports the account's id too.
    problems = dict.fromkeys(errors([*compiled.findings, *account_findings]))
    sources = {project.document.file: project.document.text}
    _raise_errors(stopping_errors(project, [*problems]), sources)
    _warn_of_errors([*problems], sources)


def _jobs(project: Project, environment: Environment) -> Iterator[Job]:
    """Yield the environment's jobs, whose names and images are right even if their figures are not."""
    for size in environment.sizes:
        if slice_ := Catalog().find(size):
            # Tuned on itself, because the spec's `tuned_on` may be wrong.
            yield make_job(project, environment, make_rung(project, slice_, slice_), run=None)


def _check_members(stack: str, owned: Sequence[Identity], config: StackConfig) -> None:
    """Refuse bucketMembers that contain an account of the jobs themselves."""
    if any(f"serviceAccount:{identity.email}" in config.bucket_members for identity in owned):
        # Google stores two grants of equal role and member as one: deleting either would delete both.
        raise _run_error(
            f"bucketMembers contains the account of {stack} itself, which has access already: removing the entry "
            "later would remove the jobs' own access",
            f"remove it: pulumi config rm bucketMembers --stack {stack}, or set it to the other members",
        )


def _read_project(path: Path, root: Path, stack: str) -> Project:
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    document = read_file(path, shown)
    if document.root is None and not document.text:
        raise _run_error(
            f"{document.findings[0].message}. Without the spec, the stack {stack} has no resources",
            f"set the path of the spec, relative to {root}: pulumi config set spec PATH --stack {stack}",
        )
    project, findings = parse_project(document)
    problems, sources = errors(findings), {shown: document.text}
    _raise_errors(stopping_errors(project, findings), sources)
    if project is None:
        raise AssertionError  # without an error there is a project
    _warn_of_errors(problems, sources)
    return project


def _check_config(root: Path, stack: str) -> None:
    """Check the stack file and the effective config: Pulumi accepts undeclared keys silently."""
    namespace, project = pulumi.get_project(), pulumi_project(root)
    if project:
        for findings, sources in (
            project_findings(project, project.file),
            file_findings(project.stack_file(stack), project.name, root),
        ):
            _raise_errors(errors(findings), sources)
    from pulumi.runtime.config import CONFIG

    # Config may also come from the command line or from an environment of Pulumi ESC.
    unknown = [key for key in CONFIG.get() if not is_known(key, namespace)]
    if unknown:
        raise _run_error(
            f"the stack {stack} has the config {', '.join(unknown)}, which the program does not read",
            f"delete it: pulumi config rm {unknown[0]} --stack {stack}",
        )


def _stack_config(config: pulumi.Config) -> StackConfig:
    return StackConfig(
        project_number=config.get("projectNumber") or "",
        bucket_members=tuple(_parse_list(config.get("bucketMembers"))),
        release=tuple(_parse_list(config.get("release"))),
        service_account_project=config.get("serviceAccountProject") or "",
        tpu_service_account=config.get("tpuServiceAccount") or "",
        deletion_role=config.get("deletionRole") or "",
    )


def _parse_list(value: Any) -> list[str]:
    """Parse a list, which the engine passes as JSON."""
    items: list[str] = json.loads(value) if isinstance(value, str) and value else []
    return items


def _raise_errors(findings: Sequence[Finding], sources: Mapping[str, str]) -> None:
    if findings:
        count = f"{len(findings)} error{'s' if len(findings) > 1 else ''}"
        raise pulumi.RunError(
            f"{count}, and nothing was changed\n{report(list(findings), sources).rstrip()}"
        )


def _warn_of_errors(findings: Sequence[Finding], sources: Mapping[str, str]) -> None:
    if findings:
        pulumi.log.warn(
            f"no resource depends on these errors, and no config can be rendered with them\n"
            f"{report(list(findings), sources).rstrip()}"
        )


def _run_error(message: str, help: str) -> pulumi.RunError:
    return pulumi.RunError(f"{message}\nhelp: {help}")
