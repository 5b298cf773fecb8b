"""The Pulumi project beside a spec: its file, the folders that it names, and the settings and config of its stacks."""

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from tpucfg.findings import errors
from tpucfg.fs import is_file
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import leaf_paths, value_at, values_at
from tpucfg.text_format import printable
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_file

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
        packages = [value for pattern in _PACKAGES for _, value in values_at(self.settings, pattern)]
        paths += [path for path in packages if isinstance(path, str) and path.startswith((".", "/"))]
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
    config = {full_key(key, pulumi.name): _config_value(value) for key, value in config_of(stack_file).items()}
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
            value = next((declared[name] for name in ("default", "value") if declared.get(name) is not None), None)
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
        path[-1:] == (_ENCRYPTED,) and len(value_at(value, path[:-1])) == 1 and isinstance(value_at(value, path), str)
        for path in leaf_paths(value)
    )
    return ConfigValue(text, is_encrypted)


# What changes of a project and its stacks are about


class StackFile(NamedTuple):
    """The file of one stack."""

    name: str
    """Its path relative to the project's folder."""
    problem: str
    """The reason why the file cannot be read; empty if it can, or does not exist."""
    text: str
    """The text of a file that cannot be read."""
    settings: Mapping[str, Any]
    """Everything but `config`."""
    config: Mapping[str, ConfigValue]
    """The effective config, with the project's defaults, by full key."""


class PulumiFiles(NamedTuple):
    """The project file and the stack files of one revision."""

    file: str = ""
    """The name of the project file that the engine reads; empty without one."""
    problem: str = ""
    """The reason why the project file cannot be read; empty if it can."""
    text: str = ""
    """The text of a file that cannot be read."""
    namespace: str = ""
    """The project's name."""
    settings: Mapping[str, Any] = {}
    """The settings by path, such as `runtime.options.virtualenv`, without `name` and `config`."""
    stacks: Mapping[str, StackFile] = {}
    other_code: tuple[str, ...] = ()
    """Paths of code that Pulumi runs besides the program."""

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that were read, relative to the project's folder."""
        return (self.file, *(stack.name for stack in self.stacks.values()))


def read_pulumi_files(folder: Path, stacks: Collection[str]) -> PulumiFiles:
    """Return the settings of a folder's Pulumi project, and those of the given stacks."""
    path = project_file(folder)
    if path is None:
        return PulumiFiles()
    document = read_file(path)
    project, problem = project_of(folder, document), _problem_of(document)
    if project is None:
        return PulumiFiles(path.name, problem or "it has no name", document.text)
    return PulumiFiles(
        path.name,
        problem,
        document.text if problem else "",
        project.name,
        _flattened(project.settings),
        {stack: _read_stack(project, stack) for stack in sorted(stacks)},
        project.other_code,
    )


def is_empty(document: Document) -> bool:
    """Return True for a file without content, as `pulumi stack init` may leave it, with or without comments."""
    has_content = any(line.strip() and not line.lstrip().startswith("#") for line in document.text.splitlines())
    # A file that cannot be read has no text either.
    return document.root is None and not has_content and all(finding.id == "TPU002" for finding in document.findings)


def _read_stack(project: PulumiProject, stack: str) -> StackFile:
    path = project.stack_file(stack)
    document = read_file(path)
    is_mapping = isinstance(document.data, dict)
    problem = ""
    # Without a file, the stack has only the project's defaults.
    if path.exists() and not is_empty(document):
        problem = _problem_of(document) if is_mapping or document.data is None else "it is not a mapping"
    settings = {key: value for key, value in document.data.items() if key != "config"} if is_mapping else {}
    name = os.path.relpath(path, project.folder)
    return StackFile(name, problem, document.text if problem else "", settings, stack_config(project, document))


def _problem_of(document: Document) -> str:
    """Return the first error in the text of a file; empty if it can be read."""
    return next((finding.message for finding in errors(document.findings)), "")


def _flattened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a project file by path; a runtime that is a text is its name."""
    nested = {key: value for key, value in settings.items() if key not in {"name", "config"}}
    if isinstance(settings.get("runtime"), str):
        nested["runtime"] = {"name": settings["runtime"]}
    flat = {".".join(map(str, path)): value_at(nested, path) for path in leaf_paths(nested) if path}
    return {path: value for path, value in flat.items() if value is not None}
