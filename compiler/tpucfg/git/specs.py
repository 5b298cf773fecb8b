"""The specs of a repository, and which of them a change can affect."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from tpucfg.git.changed_files import TreeChange
from tpucfg.git.repository import Repository, list_entries, read_contents
from tpucfg.infra.pulumi_project import PROJECT_FILES, project_of
from tpucfg.spec import SPEC_NAME
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import MAX_FILE_BYTES, read_bytes, read_file

_NOT_LOCAL: Final = ("gs://", "${")
"""A `package` that contains one of these is not a folder of the repository."""


class SpecScope(NamedTuple):
    """The specs of two revisions, by their paths in the repository."""

    affected: tuple[PurePosixPath, ...]
    """The specs whose configs or resources the change can affect, sorted."""
    others: tuple[PurePosixPath, ...]


def find_affected_specs(tree: TreeChange) -> SpecScope:
    """Return the specs of both revisions; an only spec is always affected.

    A spec is affected by a change of a file in its own folder, unless that file is nearer to another spec, and by a
    change below a folder that it names: the program and the stacks of its Pulumi project, or its trainer's package.
    """
    specs = sorted(path for path in tree.before | tree.after if path.name == SPEC_NAME)
    if len(specs) <= 1:
        return SpecScope(tuple(specs), ())
    folders = {spec.parent for spec in specs}
    owners = {next((parent for parent in path.parents if parent in folders), None) for path in tree.changed}
    affected = {spec for spec in specs if spec.parent in owners}
    changed_folders = {parent for path in tree.changed for parent in (path, *path.parents)}
    for files, commit in ((tree.after, tree.head), (tree.before, tree.base)):
        candidates = [spec for spec in specs if spec in files and spec not in affected]
        for spec, named in _named_folders(tree.repository, commit, files, candidates):
            if not changed_folders.isdisjoint(named):
                affected.add(spec)
    return SpecScope(tuple(sorted(affected)), tuple(spec for spec in specs if spec not in affected))


def normalize_path(spec_folder: PurePosixPath, value: str) -> PurePosixPath | None:
    """Return a path from a file of the project, relative to the repository's root; None if it leads out of it."""
    path = PurePosixPath(os.path.normpath(spec_folder / value))
    return None if path.is_absolute() or ".." in path.parts or "\0" in value else path


def program_folders(spec_folder: PurePosixPath, project_file: Document) -> tuple[PurePosixPath, ...]:
    """Return the folders of the stack program, the stacks and other code that a project file beside the spec names."""
    pulumi = project_of(Path(), project_file)
    named = (str(pulumi.program), str(pulumi.stacks), *pulumi.other_code) if pulumi else ()
    paths = [normalize_path(spec_folder, value) for value in named]
    return tuple(path for path in paths if path is not None and path != spec_folder)


def package_folder(spec_folder: PurePosixPath, spec: Any) -> PurePosixPath | None:
    """Return the folder of a local trainer package, from the data of a spec; None if it has none."""
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    package = trainer.get("package") if isinstance(trainer, dict) else None
    if not isinstance(package, str) or any(part in package for part in _NOT_LOCAL):
        return None
    return normalize_path(spec_folder, package)


def _named_folders(
    repository: Repository, commit: str | None, files: frozenset[PurePosixPath], specs: Iterable[PurePosixPath]
) -> Iterator[tuple[PurePosixPath, tuple[PurePosixPath, ...]]]:
    """Yield each spec with the folders that it names outside its own folder."""
    names = (SPEC_NAME, *PROJECT_FILES)
    wanted = [spec.parent / name for spec in specs for name in names if spec.parent / name in files]
    contents = _read_files(repository, commit, wanted)
    for spec in specs:
        folder = spec.parent
        project_file = next((folder / name for name in PROJECT_FILES if folder / name in contents), None)
        document = read_bytes(contents[project_file], str(project_file)) if project_file else None
        # Parsing takes longer than searching, and few specs name a package.
        text = contents.get(spec, b"")
        package = package_folder(folder, _data(text)) if b"package" in text else None
        yield spec, (*(program_folders(folder, document) if document else ()), *((package,) if package else ()))


def _read_files(
    repository: Repository, commit: str | None, paths: list[PurePosixPath]
) -> Mapping[PurePosixPath, bytes]:
    if commit is None:
        root = repository.at_root().folder
        return {path: read_file(root / path).text.encode(errors="replace") for path in paths}
    if not paths:
        return {}
    entries = [
        entry
        for entry in list_entries(repository, commit, paths, recursive=False)
        if entry.is_regular and entry.size <= MAX_FILE_BYTES
    ]
    return dict(zip((entry.path for entry in entries), read_contents(repository, entries), strict=True))


def _data(content: bytes) -> Any:
    return read_bytes(content, "").data if content else None
