"""The settings that `pulumi up` reads from the project file and the stack files of one revision."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.infra.pulumi_project import (
    ConfigValue,
    PulumiProject,
    declared_key,
    declared_values,
    is_empty,
    problem_of,
    project_of,
    read_project_file,
    stack_config,
)
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_file

_NESTED: Final = ("runtime", "runtime.options", "backend", "options", "plugins", "packages")
"""Mappings of a project file whose keys are settings of their own."""


class StackFile(NamedTuple):
    """The file of one stack."""

    name: str
    """Its path relative to the project's folder."""
    exists: bool
    problem: str
    """The reason why the file cannot be read; empty if it can."""
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
    parts: Mapping[str, Any] = {}
    """Values of `config` that apply to a part of another value, by key."""
    stacks: Mapping[str, StackFile] = {}
    other_code: tuple[str, ...] = ()
    """Paths of code that Pulumi runs besides the program."""

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that were read, relative to the project's folder."""
        return (self.file, *(stack.name for stack in self.stacks.values()))


def read_pulumi_files(folder: Path, stacks: Collection[str]) -> PulumiFiles:
    """Return the settings of a folder's Pulumi project, and those of the given stacks."""
    document = read_project_file(folder)
    if document is None:
        return PulumiFiles()
    project, file = project_of(folder, document), Path(document.file).name
    if project is None:
        return PulumiFiles(file, problem_of(document) or "it has no name", document.text)
    values = declared_values(project.settings)
    return PulumiFiles(
        file,
        problem := problem_of(document),
        document.text if problem else "",
        project.name,
        _flattened(project.settings),
        {key: value for key, value in values.items() if declared_key(key, project.name) is None},
        {stack: _read_stack(project, stack) for stack in sorted(stacks)},
        project.other_code,
    )


def _read_stack(project: PulumiProject, stack: str) -> StackFile:
    path = project.stack_file(stack)
    document = read_file(path)
    data = document.data if isinstance(document.data, dict) else {}
    settings = {key: value for key, value in data.items() if key != "config"}
    # Without a file, the document has an error too: the stack then has only the project's defaults.
    exists = path.exists()
    problem = _stack_problem(document) if exists else ""
    name = os.path.relpath(path, project.folder)
    text = document.text if problem else ""
    return StackFile(name, exists, problem, text, settings, stack_config(project, document))


def _stack_problem(document: Document) -> str:
    if is_empty(document):
        return ""
    if document.data is not None and not isinstance(document.data, dict):
        return "it is not a mapping"
    return problem_of(document)


def _flattened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a project file by path; a runtime that is a text is its name."""
    runtime = settings.get("runtime")
    nested = {**settings, "runtime": {"name": runtime}} if isinstance(runtime, str) else settings
    pending = [(key, value) for key, value in nested.items() if key not in {"name", "config"}]
    flat: dict[str, Any] = {}
    while pending:
        path, value = pending.pop(0)
        if path in _NESTED and isinstance(value, dict):
            pending += [(f"{path}.{key}", item) for key, item in value.items()]
        elif value is not None:
            flat[path] = value
    # The former spelling of stackConfigDir.
    if isinstance(settings.get("config"), str):
        flat.setdefault("stackConfigDir", settings["config"])
    return flat
