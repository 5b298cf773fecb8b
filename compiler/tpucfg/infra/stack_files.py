"""Stack files, `Pulumi.<environment>.yaml`: checked against a closed schema, as Pulumi accepts any key silently."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import MAX_FINDINGS, Finding, collect, errors
from tpucfg.fs import is_file, sorted_glob
from tpucfg.schemas import RuleIds
from tpucfg.spec.project import Project
from tpucfg.text_format import format_value, nearest, printable
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_file

SCHEMA: Final = "stack"
IDS: Final = RuleIds("TPU080", "TPU081", "TPU081", "TPU081", "TPU081", "key", "the file")
KEYS: Final = ("spec", "projectNumber", "bucketMembers", "serviceAccountProject", "tpuServiceAccount")
"""Config keys that the stack program reads, without the Pulumi project's name; a test compares them with the schema."""
PULUMI_NAMESPACE: Final = "pulumi"
"""The namespace of Pulumi's own config keys."""


class PulumiProject(NamedTuple):
    """The parts of a Pulumi.yaml that tpucfg uses."""

    folder: Path
    name: str
    """Also the namespace of the stacks' config."""
    program: Path
    stacks: Path
    """The folder of the stack files."""


def pulumi_project(folder: Path) -> PulumiProject | None:
    """Return the Pulumi project of a folder; None without a Pulumi.yaml that Pulumi could read."""
    document = read_file(folder / "Pulumi.yaml")
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        return None
    program, stacks = (str(data.get(key) or ".") for key in ("main", "stackConfigDir"))
    return PulumiProject(folder, data["name"], folder / program, folder / stacks)


def effective_config(pulumi: PulumiProject, stack: str) -> dict[str, str]:
    """Return the config of a stack as the engine passes it: full keys, lists as JSON, without encrypted values."""
    config = _config_of(read_file(pulumi.stacks / f"Pulumi.{stack}.yaml"))
    return {
        key if ":" in key else f"{pulumi.name}:{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in config.items()
        # An encrypted value is a mapping, {secure: …}; decrypting it would need the passphrase.
        if value is not None and not isinstance(value, dict)
    }


def other_spec(spec: Path, stack: str) -> str:
    """Return the spec in a stack's own config, as written there, if it differs from `spec`; otherwise empty."""
    pulumi = pulumi_project(spec.parent)
    configured = effective_config(pulumi, stack).get(f"{pulumi.name}:spec") if pulumi else None
    # A path with a NUL character raises ValueError when it is resolved.
    if pulumi is None or not configured or "\0" in configured:
        return ""
    return "" if (pulumi.folder / configured).resolve() == spec.resolve() else printable(configured)


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
    findings: list[Finding] = []
    sources = {}
    for path in sorted_glob(pulumi.stacks, "Pulumi.*.yaml"):
        if stacks and _stack_name(path) not in stacks:
            continue
        document = read_file(path)
        sources[document.file] = document.text
        findings += document_findings(document, pulumi.name)
        findings += _spec_findings(document, path, pulumi, spec, project)
    return findings, sources


def file_findings(path: Path, namespace: str, root: Path) -> tuple[list[Finding], dict[str, str]]:
    """Return the findings of one stack file, named relative to `root`, and its text; nothing without a file."""
    if not is_file(path):
        return [], {}
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    document = read_file(path, name)
    return list(document_findings(document, namespace)), {name: document.text}


def document_findings(document: Document, namespace: str) -> tuple[Finding, ...]:
    """Return the schema errors of a stack file, its unknown keys and its duplicate keys."""
    if document.root is None or errors(document.findings):
        # An empty file is valid: `pulumi stack init` may leave one, with or without comments.
        return collect(document.findings) if any(_has_content(line) for line in document.text.splitlines()) else ()
    config = _config_of(document)
    findings = [
        *islice(_unknown_keys(document, namespace, config), MAX_FINDINGS),
        *_duplicate_keys(document, namespace, config),
    ]
    reported = {finding.location for finding in findings}
    # The quick check first: importing what explains schema errors takes longer than most commands run.
    if not schemas.is_valid(SCHEMA, document.data):
        data = _without_unknown_keys(document.data, namespace)
        problems = (problem.finding_in(document) for problem in schemas.schema_problems(SCHEMA, data, IDS))
        findings += [finding for finding in problems if finding.location not in reported]
    return collect([*document.findings, *findings])


def _config_of(document: Document) -> Mapping[str, Any]:
    config = document.data.get("config") if isinstance(document.data, dict) else None
    return config if isinstance(config, dict) else {}


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _unknown_keys(document: Document, namespace: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    for key in config:
        if is_known(key, namespace):
            continue
        owner, _, name = key.rpartition(":")
        yield Finding.of(
            "TPU080",
            f"config has no key {format_value(key, quoted=False)}: Pulumi accepts it silently, and nothing reads it",
            document.key_location(("config", key)),
            help=_unknown_key_help(owner, name, namespace),
            details=(f"it takes: {', '.join(f'{namespace}:{known}' for known in KEYS)}",),
        )


def _unknown_key_help(owner: str, name: str, namespace: str) -> str:
    if name in KEYS:
        return f"write {namespace}:{name}: this Pulumi project is called {namespace}"
    if owner == "gcp":
        return "delete it: the program sets the provider's project and region from the spec"
    near = nearest(name, KEYS)
    return f"did you mean {namespace}:{near}?" if near else "delete it"


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


def _without_unknown_keys(data: Any, namespace: str) -> Any:
    """Return the document without the keys that `_unknown_keys` reports, so that the schema does not repeat them."""
    if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
        return data
    config = {key: value for key, value in data["config"].items() if is_known(key, namespace)}
    return {**data, "config": config}


def _stack_name(path: Path) -> str:
    return path.name.removeprefix("Pulumi.").removesuffix(".yaml")


def _spec_findings(
    document: Document, path: Path, pulumi: PulumiProject, spec: Path, project: Project | None
) -> Iterator[Finding]:
    """Yield a finding for a stack whose spec is missing, or whose spec has no such environment."""
    config = _config_of(document)
    key = next((key for key in (f"{pulumi.name}:spec", "spec") if isinstance(config.get(key), str)), None)
    configured = pulumi.folder / (config[key] if key else "tpucfg.yaml")
    if not is_file(configured):
        yield Finding.of(
            "TPU083",
            f"the spec of this stack, {format_value(str(configured), quoted=False)}, does not exist",
            document.value_location(("config", key or "")),
            help=f"write the spec's path relative to {pulumi.folder}",
        )
    elif project is not None and configured.resolve() == spec.resolve():
        yield from _environment_findings(document, path, spec, project)


def _environment_findings(document: Document, path: Path, spec: Path, project: Project) -> Iterator[Finding]:
    stack = _stack_name(path)
    if stack in project.environments:
        return
    near = nearest(stack, tuple(project.environments))
    fix = f"rename the file to Pulumi.{near}.yaml" if near else f"delete {path}"
    yield Finding.of(
        "TPU082",
        f"{path.name} configures the stack {stack}, but {spec} has no environment of that name",
        document.value_location(()),
        help=f"{fix}, or add environments.{stack} to the spec",
        details=(f"environments: {', '.join(project.environments)}",),
    )
