"""Stack files, `Pulumi.<environment>.yaml`: closed by a schema, because Pulumi takes undeclared keys in silence."""

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
"""What the program reads, without the Pulumi project's name before it; a test holds that the schema has the same."""
PULUMI: Final = "pulumi"
"""The namespace that Pulumi keeps for itself."""


class PulumiProject(NamedTuple):
    """What a Pulumi.yaml says, as far as it matters here."""

    folder: Path
    name: str
    """Also the namespace of the stacks' config."""
    program: Path
    stacks: Path
    """The folder of the stack files."""


def pulumi_project(folder: Path) -> PulumiProject | None:
    """The Pulumi project in a folder; None where there is none, or none that Pulumi could read."""
    document = read_file(folder / "Pulumi.yaml")
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        return None
    program, stacks = (str(data.get(key) or ".") for key in ("main", "stackConfigDir"))
    return PulumiProject(folder, data["name"], folder / program, folder / stacks)


def effective_config(pulumi: PulumiProject, stack: str) -> dict[str, str]:
    """The config of a stack as the engine passes it: full keys, lists as JSON. What is secret stays out."""
    data = read_file(pulumi.stacks / f"Pulumi.{stack}.yaml").data
    config = data.get("config") if isinstance(data, dict) else None
    return {
        key if ":" in key else f"{pulumi.name}:{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in (config if isinstance(config, dict) else {}).items()
        if value is not None and not isinstance(value, dict)
    }


def other_spec(spec: Path, stack: str) -> str:
    """The spec that a stack's own config names, as it is written there, if that is another one; empty if it is not."""
    pulumi = pulumi_project(spec.parent)
    named = effective_config(pulumi, stack).get(f"{pulumi.name}:spec") if pulumi else None
    if pulumi is None or not named or "\0" in named:
        return ""
    return "" if (pulumi.folder / named).resolve() == spec.resolve() else printable(named)


def is_known(key: str, namespace: str) -> bool:
    """Whether anything reads this key of a stack's config."""
    owner, _, name = key.rpartition(":")
    return owner == PULUMI or (owner in {"", namespace} and name in KEYS)


def stack_file_findings(
    spec: Path, project: Project | None, stacks: Sequence[str] = ()
) -> tuple[list[Finding], dict[str, str]]:
    """What is wrong with the stack files beside a spec, all or those of some stacks, and their texts by name."""
    pulumi = pulumi_project(spec.parent)
    if pulumi is None:
        return [], {}
    found: list[Finding] = []
    sources = {}
    for path in sorted_glob(pulumi.stacks, "Pulumi.*.yaml"):
        if stacks and _stack_of(path) not in stacks:
            continue
        document = read_file(path)
        sources[document.file] = document.text
        found += document_findings(document, pulumi.name)
        found += _owner_findings(document, path, pulumi, spec, project)
    return found, sources


def file_findings(path: Path, namespace: str, root: Path) -> tuple[list[Finding], dict[str, str]]:
    """What is wrong with one stack file, named as seen from `root`, and its text; nothing where there is no file."""
    if not is_file(path):
        return [], {}
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    document = read_file(path, name)
    return list(document_findings(document, namespace)), {name: document.text}


def document_findings(document: Document, namespace: str) -> tuple[Finding, ...]:
    """What the schema refuses, and keys that another program would read."""
    if document.root is None or errors(document.findings):
        # An empty file is what `pulumi stack init` may leave: no config is no mistake, whatever a comment says of it.
        return collect(document.findings) if any(_says_something(row) for row in document.text.splitlines()) else ()
    config = document.data.get("config") if isinstance(document.data, dict) else None
    found = list(islice(_key_findings(document, namespace, config), MAX_FINDINGS)) if isinstance(config, dict) else []
    found += _twice(document, namespace, config) if isinstance(config, dict) else []
    refused = {finding.location for finding in found}
    if not schemas.is_valid(SCHEMA, document.data):
        data = _without_unknown(document.data, namespace)
        problems = (problem.finding_in(document) for problem in schemas.schema_problems(SCHEMA, data, IDS))
        found += [finding for finding in problems if finding.location not in refused]
    return collect([*document.findings, *found])


def _says_something(row: str) -> bool:
    return bool(row.strip()) and not row.lstrip().startswith("#")


def _twice(document: Document, namespace: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    """A key with and without the project's name before it: to Pulumi both are one, and one of the values is lost."""
    for name in KEYS:
        short, full = (("config", name), ("config", f"{namespace}:{name}"))
        if short[-1] in config and full[-1] in config:
            first, second = sorted((document.key_location(short), document.key_location(full)))
            yield Finding.of(
                "TPU003",
                f"{name} and {namespace}:{name} are one key: Pulumi reads one of the two values, and not the other",
                second,
                help="delete one of the two",
                related=((first, "the first one"),),
            )


def _without_unknown(data: Any, namespace: str) -> Any:
    """The document without the keys that were refused already."""
    if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
        return data
    config = {key: value for key, value in data["config"].items() if is_known(key, namespace)}
    return {**data, "config": config}


def _key_findings(document: Document, namespace: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    for key in config:
        if is_known(key, namespace):
            continue
        owner, _, name = key.rpartition(":")
        yield Finding.of(
            "TPU080",
            f"config has no key {format_value(key, quoted=False)}: Pulumi takes it in silence, and nothing reads it",
            document.key_location(("config", key)),
            help=_instead(owner, name, namespace),
            details=(f"it takes: {', '.join(f'{namespace}:{known}' for known in KEYS)}",),
        )


def _instead(owner: str, name: str, namespace: str) -> str:
    if name in KEYS:
        return f"write {namespace}:{name}: this Pulumi project is called {namespace}"
    if owner == "gcp":
        return "delete it: the program sets the provider's project and region from the spec"
    near = nearest(name, KEYS)
    return f"did you mean {namespace}:{near}?" if near else "delete it"


def _stack_of(path: Path) -> str:
    return path.name.removeprefix("Pulumi.").removesuffix(".yaml")


def _owner_findings(
    document: Document, path: Path, pulumi: PulumiProject, spec: Path, project: Project | None
) -> Iterator[Finding]:
    """A stack without an environment, or without a spec."""
    config = document.data.get("config") if isinstance(document.data, dict) else None
    config = config if isinstance(config, dict) else {}
    key = next((key for key in (f"{pulumi.name}:spec", "spec") if isinstance(config.get(key), str)), None)
    named = pulumi.folder / (config[key] if key else "tpucfg.yaml")
    if not is_file(named):
        yield Finding.of(
            "TPU083",
            f"the spec of this stack is {format_value(str(named), quoted=False)}, and there is no such file",
            document.value_location(("config", key or "")),
            help=f"write the spec's path as seen from {pulumi.folder}",
        )
    elif project is not None and named.resolve() == spec.resolve():
        yield from _environment_findings(document, path, spec, project)


def _environment_findings(document: Document, path: Path, spec: Path, project: Project) -> Iterator[Finding]:
    stack = _stack_of(path)
    if stack in project.environments:
        return
    near = nearest(stack, tuple(project.environments))
    fix = f"rename the file to Pulumi.{near}.yaml" if near else f"delete {path}"
    yield Finding.of(
        "TPU082",
        f"{path.name} is the file of a stack {stack}, and {spec} has no environment of that name",
        document.value_location(()),
        help=f"{fix}, or add environments.{stack} to the spec",
        details=(f"environments: {', '.join(project.environments)}",),
    )
