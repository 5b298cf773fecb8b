"""What one stack is made from, as frozen values: the spec's environment, and the little that stack config adds.

Every name comes from the compiler, which writes the same names into the configs. Nothing here touches Google.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pulumi

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, errors
from tpucfg.findings.formats.text import report
from tpucfg.infra import stack_files
from tpucfg.plan import Selection
from tpucfg.plan.naming import account_id, bucket_of, kubernetes_account, named_account, workload_account
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import project_from_document
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.common import long_account_id
from tpucfg.yamldoc.reader import read_file

HERE: Final = Path(__file__).resolve().parent
SOFT_DELETE_DAYS: Final = 7
"""Days for which a deleted object can be restored, and is paid for: Google's own default, set on purpose."""
SOFT_DELETE_DAYS_PROTECTED: Final = 30
"""The same in a protected environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """What stack config holds; an empty text is a value that is not set."""

    project_number: str = ""
    bucket_members: tuple[str, ...] = ()
    service_account_project: str = ""
    tpu_service_account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One environment, ready to be made."""

    environment: str
    """Its name, which is the stack's."""
    project: str
    """The Google project's id."""
    region: str
    target: str
    bucket: str
    labels: Mapping[str, str]
    protect: bool
    keep_data: bool
    """A bucket that the stack no longer wants stays, with its objects."""
    soft_delete_days: int
    account: str
    """The e-mail that the jobs run as."""
    account_id: str | None
    """The id to make it with; None where the spec names an account of its own."""
    kubernetes_account: str | None
    """On gke, the Kubernetes service account that may act as it: `namespace/name`."""
    config: StackConfig


def read_settings() -> Settings:
    """The settings of the stack that runs.

    Raises:
        pulumi.RunError: The stack's file or the spec does not hold; the message says what to do.
    """
    root, stack = _root(), pulumi.get_stack()
    _check_config(root, stack)
    config = pulumi.Config()
    path = root / (config.get("spec") or "tpucfg.yaml")
    return settings_of(_project(path, root, stack), stack, _stack_config(config))


def settings_of(project: Project, stack: str, config: StackConfig) -> Settings:
    """The settings of one environment of a project.

    Raises:
        pulumi.RunError: The spec has no such environment, or holds an error about this one.
    """
    file = project.document.file
    if stack not in project.environments:
        raise _refused(
            f"{file} has no environment {stack}, and a stack's name is its environment's: {stack} has nothing to make",
            f"add environments.{stack} to {file}, or take a stack of an environment that it has"
            f" ({', '.join(project.environments)}): pulumi stack select {next(iter(project.environments))}",
        )
    environment = project.environments[stack]
    named = named_account(project, environment)
    _stop_at_errors(project, environment, makes_account=named is None)
    if f"serviceAccount:{workload_account(project, environment)}" in config.bucket_members:
        # Two grants in the stack would be one at Google, and the end of either would be the end of both.
        raise _refused(
            f"bucketMembers names the account of {stack} itself, which has the bucket already: taking the entry out "
            "later would take the jobs' own access away",
            f"leave it out: pulumi config rm bucketMembers --stack {stack}, or set it to the other members",
        )
    return Settings(
        environment=stack,
        project=environment.project,
        region=environment.region,
        target=environment.target,
        bucket=bucket_of(project, environment),
        labels={"tpucfg-project": project.name, "tpucfg-environment": stack, **environment.labels},
        protect=environment.protect,
        keep_data=environment.keep_data,
        soft_delete_days=_soft_delete_days(environment),
        account=workload_account(project, environment),
        account_id=None if named else account_id(name=project.name, environment=stack),
        kubernetes_account=kubernetes_account(project, environment),
        config=config,
    )


def _soft_delete_days(environment: Environment) -> int:
    """Checkpoints are deleted by the thousand, and what is kept of them is billed: none where data need not be kept."""
    if environment.protect:
        return SOFT_DELETE_DAYS_PROTECTED
    return SOFT_DELETE_DAYS if environment.keep_data else 0


def _stop_at_errors(project: Project, environment: Environment, *, makes_account: bool) -> None:
    """A stack checks its own environment and no other: another team's mistake does not stop this one's bucket."""
    compiled = compile_project(project, Catalog(), Selection(environments=(environment.name,)))
    found = [*compiled.findings, *(long_account_id(project, environment, environment.target) if makes_account else ())]
    _stop(list(dict.fromkeys(errors(found))), {project.document.file: project.document.text})


def _project(path: Path, root: Path, stack: str) -> Project:
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    document = read_file(path, shown)
    if document.root is None and not document.text:
        said = document.findings[0].message
        raise _refused(
            f"{said}. Without the spec the stack {stack} has nothing to make",
            f"write its path, as seen from {root}: pulumi config set spec PATH --stack {stack}",
        )
    project, found = project_from_document(document)
    if project is None:
        _stop(errors(found), {shown: document.text})
        raise AssertionError  # without an error there is a project
    return project


def _check_config(root: Path, stack: str) -> None:
    """Pulumi takes undeclared keys in silence, so the stack's file is checked, and what comes from elsewhere too."""
    namespace, project = pulumi.get_project(), stack_files.pulumi_project(root)
    file = HERE / f"Pulumi.{stack}.yaml"
    found, text = stack_files.file_findings(file, project.name if project else namespace, root)
    _stop(errors(found), text)
    from pulumi.runtime.config import CONFIG

    unknown = [key for key in CONFIG.get() if not stack_files.is_known(key, namespace)]
    if unknown:
        raise _refused(
            f"the stack {stack} has the config {', '.join(unknown)}, which the program does not read",
            f"delete it: pulumi config rm {unknown[0]} --stack {stack}",
        )


def _stack_config(config: pulumi.Config) -> StackConfig:
    return StackConfig(
        project_number=config.get("projectNumber") or "",
        bucket_members=tuple(_listed(config.get("bucketMembers"))),
        service_account_project=config.get("serviceAccountProject") or "",
        tpu_service_account=config.get("tpuServiceAccount") or "",
    )


def _listed(value: Any) -> list[str]:
    """A list arrives as JSON from the engine."""
    listed: list[str] = json.loads(value) if isinstance(value, str) and value else []
    return listed


def _root() -> Path:
    """The folder of Pulumi.yaml, at most three above the program; the next one above it where there is none.

    The program that the package carries may lie in the virtual environment of another Pulumi project.
    """
    return next((folder for folder in HERE.parents[:3] if (folder / "Pulumi.yaml").is_file()), HERE.parent)


def _stop(found: Sequence[Finding], sources: Mapping[str, str]) -> None:
    if found:
        errors_ = f"{len(found)} error{'s' if len(found) > 1 else ''}"
        raise pulumi.RunError(f"{errors_}, and nothing was changed\n{report(list(found), sources).rstrip()}")


def _refused(message: str, help: str) -> pulumi.RunError:
    return pulumi.RunError(f"{message}\nhelp: {help}")
