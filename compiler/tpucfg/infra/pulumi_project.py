"""The Pulumi project beside a spec: the file that the engine reads, its settings, and the folders that it names."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.findings import errors
from tpucfg.fs import is_file
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_file

PROJECT_FILES: Final = ("Pulumi.json", "Pulumi.yaml", "Pulumi.yml")
"""The names of a project file in the engine's order: it reads the first that exists, and ignores the others.

findProjectInDir in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/paths.go, with the order of
`Exts` in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/encoding/marshal.go.
"""
_MAIN: Final = "__main__.py"


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
        return tuple(dict.fromkeys(path for path in _code_paths(self.settings) if isinstance(path, str) and path))


def project_file(folder: Path) -> Path | None:
    """Return the project file of a folder that the engine reads; None if there is none."""
    return next((folder / name for name in PROJECT_FILES if is_file(folder / name)), None)


def read_project_file(folder: Path) -> Document | None:
    """Return the project file that the engine reads; None if there is none."""
    file = project_file(folder)
    return read_file(file) if file else None


def pulumi_project(folder: Path) -> PulumiProject | None:
    """Return the Pulumi project of a folder; None without a project file that Pulumi could read."""
    document = read_project_file(folder)
    return project_of(folder, document) if document else None


def project_of(folder: Path, document: Document) -> PulumiProject | None:
    """Return the project that a file of a folder describes; None if Pulumi could not read it."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not data["name"]:
        return None
    # `config: FOLDER` is the former spelling of `stackConfigDir: FOLDER`, which the engine still reads.
    former = data.get("config") if isinstance(data.get("config"), str) else None
    program = folder / str(data.get("main") or ".")
    # The engine runs a file in its folder: getPwdMain in pulumi/pulumi, pkg/engine/project.go.
    program = program.parent if program.name == _MAIN else program
    stacks = folder / str(data.get("stackConfigDir") or former or ".")
    return PulumiProject(folder, data["name"], program, stacks, Path(document.file).name, data)


def problem_of(document: Document) -> str:
    """Return the first error in the text of a project or stack file; empty if it can be read."""
    return next((finding.message for finding in errors(document.findings)), "")


def _code_paths(settings: Mapping[str, Any]) -> Iterator[Any]:
    runtime, plugins, packages = (settings.get(key) for key in ("runtime", "plugins", "packages"))
    options = runtime.get("options") if isinstance(runtime, dict) else None
    if isinstance(options, dict):
        yield from (options.get(key) for key in ("virtualenv", "binary"))
    for listed in plugins.values() if isinstance(plugins, dict) else ():
        yield from (item.get("path") for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()
    for package in packages.values() if isinstance(packages, dict) else ():
        source = package.get("source") if isinstance(package, dict) else package
        if isinstance(source, str) and source.startswith((".", "/")):
            yield source
