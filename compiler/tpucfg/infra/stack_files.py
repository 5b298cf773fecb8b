"""Stack files, `Pulumi.<environment>.yaml`: checked against a closed schema, as Pulumi accepts any key silently."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tpucfg import schemas
from tpucfg.findings import MAX_FINDINGS, Finding, Location, collect, errors
from tpucfg.fs import is_file, sorted_glob
from tpucfg.infra.pulumi_project import (
    PROJECT_FILES,
    ConfigValue,
    PulumiProject,
    config_of,
    declared_values,
    full_key,
    is_empty,
    pulumi_project,
    stack_config,
)
from tpucfg.schemas import RuleIds
from tpucfg.spec import SPEC_NAME, Project
from tpucfg.text_format import format_value, nearest, printable
from tpucfg.yamldoc import Document, KeyPath
from tpucfg.yamldoc.reader import read_file

SCHEMA: Final = "stack"
IDS: Final = RuleIds("TPU080", "TPU081", "TPU081", "TPU081", "TPU081", "key", "the file")
KEYS: Final = ("spec", "projectNumber", "bucketMembers", "serviceAccountProject", "tpuServiceAccount", "deletionRole")
"""Config keys that the stack program reads, without the Pulumi project's name; a test compares them with the schema."""
PULUMI_NAMESPACE: Final = "pulumi"
"""The namespace of Pulumi's own config keys."""
_PLAIN_KEY: Final = re.compile(r"([\w-]+:)?[\w-]+")
"""A key that Pulumi reads neither as a path into a value nor as a former spelling."""
_ENDINGS: Final = tuple(Path(name).suffix for name in PROJECT_FILES)


def is_known(key: str, namespace: str) -> bool:
    """Return True if the stack program or Pulumi itself reads this config key."""
    owner, _, name = key.rpartition(":")
    return owner == PULUMI_NAMESPACE or (owner in {"", namespace} and name in KEYS)


def stack_file_findings(
    spec: Path, project: Project | None, stacks: Sequence[str] = ()
) -> tuple[list[Finding], dict[str, str]]:
    """Return the findings of the stack files beside a spec (all, or those of `stacks`), and their texts by name."""
    pulumi = pulumi_project(spec.parent)
    if pulumi is None:
        return [], {}
    findings, sources = project_findings(pulumi, str(pulumi.folder / pulumi.file))
    for path in sorted_glob(pulumi.stacks, "Pulumi.*.*"):
        stack = path.name.removeprefix("Pulumi.").removesuffix(path.suffix)
        if path.suffix not in _ENDINGS or (stacks and stack not in stacks) or not os.path.lexists(path):
            continue
        if unread := _unread_finding(path, pulumi, stack):
            findings.append(unread)
        if path != pulumi.stack_file(stack) or not is_file(path):
            continue
        document = read_file(path)
        sources[document.file] = document.text
        findings += document_findings(document, pulumi.name)
        findings += _spec_findings(document, stack, pulumi, spec, project)
    return findings, sources


def _unread_finding(path: Path, pulumi: PulumiProject, stack: str) -> Finding | None:
    """Return a finding about a stack file that Pulumi ignores, or that a review of a commit does not read."""
    file = pulumi.stack_file(stack)
    name = printable(str(path))
    if path != file:
        message = f"Pulumi does not read {name}: a stack file has the ending of the project file, {pulumi.file}"
        return Finding.of("TPU085", message, Location(name), help=f"rename it to {printable(file.name)}, or delete it")
    if path.is_symlink():
        message = f"{name} is a symbolic link, which Pulumi follows and a review of a commit does not"
        return Finding.of("TPU085", message, Location(name), help="commit the file itself")
    return None


def project_findings(pulumi: PulumiProject, name: str) -> tuple[list[Finding], dict[str, str]]:
    """Return the findings about the values that a project file sets for all stacks, and its text, by `name`."""
    document = read_file(pulumi.folder / pulumi.file, name)
    findings: list[Finding] = []
    for key, value in declared_values(pulumi.settings).items():
        target = full_key(key, pulumi.name)
        location = document.value_location(_declared_path(document, key))
        if not _PLAIN_KEY.fullmatch(key):
            message = f"config key {format_value(key, quoted=False)} sets a part of a value, or has a former spelling"
            help_ = f"write it as {pulumi.name}:KEY, and set the whole value: reviews show no other form"
            findings.append(Finding.of("TPU080", message, location, help=help_))
        # An empty value is not set.
        elif target in {f"{pulumi.name}:{known}" for known in KEYS} and value not in ("", []):
            problems = schemas.schema_problems(SCHEMA, {"config": {target: value}}, IDS)
            findings += [problem.finding_at(location) for problem in problems]
    return list(collect(findings)), {name: document.text} if findings else {}


def _declared_path(document: Document, key: str) -> KeyPath:
    """Return the path of a value that a project file sets: below `default` or `value`, if it declares a type."""
    declared = document.data["config"][key]
    name = next((name for name in ("default", "value") if isinstance(declared, dict) and name in declared), None)
    return ("config", key, name) if name else ("config", key)


def file_findings(path: Path, namespace: str, root: Path) -> tuple[list[Finding], dict[str, str]]:
    """Return the findings of one stack file, named relative to `root`, and its text; nothing without a file."""
    if not is_file(path):
        return [], {}
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    document = read_file(path, name)
    return list(document_findings(document, namespace)), {name: document.text}


def document_findings(document: Document, namespace: str) -> tuple[Finding, ...]:
    """Return the schema errors of a stack file, its unknown keys and its duplicate keys."""
    if is_empty(document):
        return ()
    if document.root is None or errors(document.findings):
        return collect(document.findings)
    config = config_of(document)
    findings = [
        *islice(_unknown_keys(document, namespace, config), MAX_FINDINGS),
        *_duplicate_keys(document, namespace, config),
    ]
    reported = {finding.location for finding in findings}
    problems = schemas.schema_problems(SCHEMA, document.data, IDS)
    located = (problem.finding_in(document) for problem in problems)
    findings += [finding for finding in located if finding.location not in reported]
    return collect([*document.findings, *findings])


def _unknown_keys(document: Document, namespace: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    for key in config:
        if is_known(key, namespace):
            continue
        owner, _, name = key.rpartition(":")
        near = name if name in KEYS else nearest(name, KEYS)
        fix = f"did you mean {namespace}:{near}?" if near else "delete it"
        if owner == "gcp":
            fix = "delete it: the program sets the provider's project and region from the spec"
        yield Finding.of(
            "TPU080",
            f"config has no key {format_value(key, quoted=False)}: Pulumi accepts it silently, and nothing reads it",
            document.key_location(("config", key)),
            help=fix,
            details=(f"it takes: {', '.join(f'{namespace}:{known}' for known in KEYS)}",),
        )


def _duplicate_keys(document: Document, namespace: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield keys given both with and without the project's name: Pulumi treats the two as one key."""
    for name in KEYS:
        short, full = (("config", name), ("config", f"{namespace}:{name}"))
        if short[-1] in config and full[-1] in config:
            first, second = sorted((document.key_location(short), document.key_location(full)))
            yield Finding.of(
                "TPU003",
                f"{name} and {namespace}:{name} are the same key: Pulumi reads only one of the two values",
                second,
                help="delete one of the two",
                related=((first, "the first one"),),
            )


def _spec_findings(
    document: Document, stack: str, pulumi: PulumiProject, spec: Path, project: Project | None
) -> Iterator[Finding]:
    """Yield a finding for a stack whose spec is missing, or whose spec has no such environment."""
    config, full = config_of(document), f"{pulumi.name}:spec"
    key = next((key for key in (full, "spec") if isinstance(config.get(key), str)), "")
    default = stack_config(pulumi, document).get(full, ConfigValue("")).text or SPEC_NAME
    configured = pulumi.folder / (config[key] if key else default)
    if not is_file(configured):
        yield Finding.of(
            "TPU083",
            f"the spec of this stack, {format_value(str(configured), quoted=False)}, does not exist",
            document.value_location(("config", key)),
            help=f"write the spec's path relative to {pulumi.folder}",
        )
    elif project is not None and configured.resolve() == spec.resolve():
        yield from _environment_findings(document, stack, spec, project)


def _environment_findings(document: Document, stack: str, spec: Path, project: Project) -> Iterator[Finding]:
    if stack in project.environments:
        return
    path = Path(document.file)
    near = nearest(stack, tuple(project.environments))
    fix = f"rename the file to Pulumi.{near}{path.suffix}" if near else f"delete {path}"
    yield Finding.of(
        "TPU082",
        f"{path.name} configures the stack {stack}, but {spec} has no environment of that name",
        document.value_location(()),
        help=f"{fix}, or add environments.{stack} to the spec",
        details=(f"environments: {', '.join(project.environments)}",),
    )
