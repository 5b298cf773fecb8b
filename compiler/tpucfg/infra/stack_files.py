"""The Pulumi project beside a spec, and its stack files, `Pulumi.<environment>.yaml`.

Stack files are checked against a closed schema, as Pulumi accepts any key silently.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tpucfg import schemas
from tpucfg.findings import MAX_FINDINGS, Finding, Location, collect, errors
from tpucfg.fs import is_file, open_regular_file, sorted_glob
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import leaf_paths, value_at, values_at
from tpucfg.schemas import RuleIds
from tpucfg.spec import SPEC_NAME, Project
from tpucfg.text_format import format_value, nearest, printable
from tpucfg.yamldoc import Document, KeyPath
from tpucfg.yamldoc.reader import read_file

# The project: its file, the folders that it names, and the settings and config of its stacks.

PROJECT_FILES: Final = ("Pulumi.json", "Pulumi.yaml", "Pulumi.yml")
"""The names of a project file in the engine's order: it reads the first that exists, and ignores the others.

findProjectInDir in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/paths.go, with the order of
`Exts` in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/encoding/marshal.go.
"""
_MAIN: Final = "__main__.py"
_ENCRYPTED: Final = "secure"
"""The only key of an encrypted value: `{secure: …}`."""
_CODE_PATHS: Final = ("runtime.options.virtualenv", "runtime.options.binary", "plugins.*.*.path")
_PACKAGES: Final = ("packages.*", "packages.*.source")
"""Settings that name a package by a local path, or by an address."""


class PulumiProject(NamedTuple):
    """A project file and the parts of it that tpucfg uses."""

    folder: Path
    name: str
    """Also the namespace of the stacks' config."""
    program: Path
    stacks: Path
    """The folder of the stack files."""
    file: str = "Pulumi.yaml"
    """The name of the project file."""
    settings: Mapping[str, Any] = {}
    """The content of the project file."""

    def stack_file(self, stack: str) -> Path:
        """Return the path of a stack's file, which has the ending of the project file.

        ProjectStackPath in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/paths.go.
        """
        return self.stacks / f"Pulumi.{stack.replace('/', '-')}{Path(self.file).suffix}"

    @property
    def other_code(self) -> tuple[str, ...]:
        """The paths of code that Pulumi runs besides the program: its Python, plugins and local packages."""
        paths = [value for pattern in _CODE_PATHS for _, value in values_at(self.settings, pattern)]
        packages = [
            value for pattern in _PACKAGES for _, value in values_at(self.settings, pattern)
        ]
        paths += [
            path for path in packages if isinstance(path, str) and path.startswith((".", "/"))
        ]
        return tuple(dict.fromkeys(path for path in paths if isinstance(path, str) and path))


def project_file(folder: Path) -> Path | None:
    """Return the project file of a folder that the engine reads; None if there is none."""
    return next((folder / name for name in PROJECT_FILES if is_file(folder / name)), None)


def pulumi_project(folder: Path) -> PulumiProject | None:
    """Return the Pulumi project of a folder; None without a project file that Pulumi could read."""
    file = project_file(folder)
    return project_of(folder, read_file(file)) if file else None


def project_of(folder: Path, document: Document) -> PulumiProject | None:
    """Return the project that a file of a folder describes; None if Pulumi could not read it."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not data["name"]:
        return None
    program = folder / str(data.get("main") or ".")
    # The engine runs a file in its folder: getPwdMain in pulumi/pulumi, pkg/engine/project.go.
    program = program.parent if program.name == _MAIN else program
    stacks = folder / str(data.get("stackConfigDir") or ".")
    return PulumiProject(folder, data["name"], program, stacks, Path(document.file).name, data)


# The config of a stack, as the engine passes it to the program: the stack file's, over the defaults of the project.


class ConfigValue(NamedTuple):
    """A value of a stack's config."""

    text: str
    """As the engine passes it: lists and mappings as JSON. Of an encrypted value, the encrypted text."""
    is_encrypted: bool = False
    """True if the value or a part of it is encrypted; decrypting it would need the stack's key."""


def effective_config(pulumi: PulumiProject, stack: str) -> dict[str, str]:
    """Return the config of a stack as the engine passes it: full keys, lists as JSON, without encrypted values."""
    config = stack_config(pulumi, read_file(pulumi.stack_file(stack)))
    return {key: value.text for key, value in config.items() if not value.is_encrypted}


def stack_config(pulumi: PulumiProject, stack_file: Document) -> dict[str, ConfigValue]:
    """Return the config of a stack by full key.

    A value of the project file applies only where the stack file has none: mergeConfig in
    https://github.com/pulumi/pulumi/blob/master/pkg/workspace/config.go.
    """
    config = {
        full_key(key, pulumi.name): _config_value(value)
        for key, value in config_of(stack_file).items()
    }
    for key, value in sorted(declared_values(pulumi.settings).items()):
        config.setdefault(full_key(key, pulumi.name), _config_value(value))
    return config


def config_of(document: Document) -> Mapping[str, Any]:
    """Return the `config` of a stack file."""
    config = value_at(document.data, ("config",))
    return config if isinstance(config, dict) else {}


def declared_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a project file sets for all stacks, by key as written there.

    A mapping declares a type, with a `default` or a `value`; anything else is the value itself.
    """
    config = settings.get("config")
    values = {}
    for key, declared in config.items() if isinstance(config, dict) else ():
        value = declared
        if isinstance(declared, dict):
            value = next(
                (declared[name] for name in ("default", "value") if declared.get(name) is not None),
                None,
            )
        if value is not None:
            values[key] = value
    return values


def full_key(key: str, namespace: str) -> str:
    """Return a config key with its namespace, which is the project's name if the key has none."""
    return key if ":" in key else f"{namespace}:{key}"


def other_spec(spec: Path, stack: str) -> str:
    """Return the spec in a stack's own config, as written there, if it differs from `spec`; otherwise empty."""
    pulumi = pulumi_project(spec.parent)
    configured = effective_config(pulumi, stack).get(f"{pulumi.name}:spec") if pulumi else None
    # A path with a NUL character raises ValueError when it is resolved.
    if pulumi is None or not configured or "\0" in configured:
        return ""
    return "" if (pulumi.folder / configured).resolve() == spec.resolve() else printable(configured)


def _config_value(value: Any) -> ConfigValue:
    if value is None:  # the engine passes an empty text
        return ConfigValue("")
    text = value if isinstance(value, str) else json.dumps(value)
    is_encrypted = any(
        path[-1:] == (_ENCRYPTED,)
        and len(value_at(value, path[:-1])) == 1
        and isinstance(value_at(value, path), str)
        for path in leaf_paths(value)
    )
    return ConfigValue(text, is_encrypted)


def is_empty(document: Document) -> bool:
    """Return True for a file without content, as `pulumi stack init` may leave it, with or without comments."""
    has_content = any(
        line.strip() and not line.lstrip().startswith("#") for line in document.text.splitlines()
    )
    # A file that cannot be read has no text either.
    return (
        document.root is None
        and not has_content
        and all(finding.id == "TPU002" for finding in document.findings)
    )


# The findings about stack files.

SCHEMA: Final = "stack"
IDS: Final = RuleIds("TPU080", "TPU081", "TPU081", "TPU081", "TPU081", "key", "the file")
KEYS: Final = (
    "spec",
    "projectNumber",
    "bucketMembers",
    "release",
    "serviceAccountProject",
    "tpuServiceAccount",
    "deletionRole",
)
"""Config keys that the stack program reads, without the Pulumi project's name; a test compares them with the schema."""
PULUMI_NAMESPACE: Final = "pulumi"
"""The namespace of Pulumi's own config keys."""
PLAIN_KEY: Final = re.compile(r"([\w-]+:)?[\w-]+")
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
    findings += _copied_program_findings(pulumi)
    for path in sorted_glob(pulumi.stacks, "Pulumi.*.*"):
        stack = path.name.removeprefix("Pulumi.").removesuffix(path.suffix)
        if (
            path.suffix not in _ENDINGS
            or (stacks and stack not in stacks)
            or not os.path.lexists(path)
        ):
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


_COPIED: Final = re.compile(rb"^from environment import Environment", re.MULTILINE)
"""A line of the program that `tpucfg init` wrote before the package had it."""
_MAX_MAIN: Final = 2**16


def _copied_program_findings(pulumi: PulumiProject) -> Iterator[Finding]:
    """Yield a finding about a program of copied modules, which import inner parts of the package."""
    main = pulumi.program / _MAIN
    if not is_file(main):
        return
    with open_regular_file(main) as file:
        if not _COPIED.search(file.read(_MAX_MAIN)):
            return
    others = (path.name for path in sorted_glob(pulumi.program, "*.py") if path.name != _MAIN)
    folder = printable(str(pulumi.program))
    yield Finding.of(
        "TPU135",
        f"{folder} is a copy of an earlier version's program: it lacks what later versions mend, and imports parts of "
        "tpucfg that can be gone, with which no `pulumi up` works",
        Location(printable(str(main))),
        help=f"in {folder}, replace the content of {_MAIN} by the two lines `from tpucfg.stack import deploy` and "
        f"`environment = deploy()`, and delete the other modules: {', '.join(others)}",
    )


def _unread_finding(path: Path, pulumi: PulumiProject, stack: str) -> Finding | None:
    """Return a finding about a stack file that Pulumi ignores, or that a review of a commit does not read."""
    file = pulumi.stack_file(stack)
    name = printable(str(path))
    if path != file:
        message = f"Pulumi does not read {name}: a stack file has the ending of the project file, {pulumi.file}"
        return Finding.of(
            "TPU085",
            message,
            Location(name),
            help=f"rename it to {printable(file.name)}, or delete it",
        )
    if path.is_symlink():
        message = (
            f"{name} is a symbolic link, which Pulumi follows and a review of a commit does not"
        )
        return Finding.of("TPU085", message, Location(name), help="commit the file itself")
    return None


def project_findings(pulumi: PulumiProject, name: str) -> tuple[list[Finding], dict[str, str]]:
    """Return the findings about the values that a project file sets for all stacks, and its text, by `name`."""
    document = read_file(pulumi.folder / pulumi.file, name)
    findings: list[Finding] = []
    for key, value in declared_values(pulumi.settings).items():
        target = full_key(key, pulumi.name)
        location = document.value_location(_declared_path(document, key))
        if not PLAIN_KEY.fullmatch(key):
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
    name = next(
        (name for name in ("default", "value") if isinstance(declared, dict) and name in declared),
        None,
    )
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


def _unknown_keys(
    document: Document, namespace: str, config: Mapping[str, Any]
) -> Iterator[Finding]:
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


def _duplicate_keys(
    document: Document, namespace: str, config: Mapping[str, Any]
) -> Iterator[Finding]:
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


def _environment_findings(
    document: Document, stack: str, spec: Path, project: Project
) -> Iterator[Finding]:
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
