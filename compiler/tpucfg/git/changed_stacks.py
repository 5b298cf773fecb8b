"""Stacks for which `pulumi up` reads other files at HEAD than at another commit."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.git.changed_files import (
    commit_files,
    normalize_path,
    program_files,
    program_paths,
    pulumi_projects,
)
from tpucfg.git.repository import Repository
from tpucfg.git.trees import CommitTree, read_files
from tpucfg.infra.stack_files import PROJECT_FILES, stack_config
from tpucfg.spec import SPEC_NAME
from tpucfg.yamldoc.reader import read_bytes

_STACK_FILE: Final = re.compile(r"Pulumi\.([a-z]([-a-z0-9]{0,28}[a-z0-9])?)\.(ya?ml|json)")
"""The file of a stack that has the name of an environment."""


class RepositoryStack(NamedTuple):
    """A stack of a Pulumi project in the repository."""

    folder: str
    """That of the project, relative to the root of the repository."""
    name: str


def changed_stacks(repository: Repository, base: str | None, head: str) -> list[RepositoryStack]:
    """Return the stacks of head that differ: all of them without a base, and those with files that are not known.

    Raises:
        GitError: A commit cannot be read.
    """
    if base == head:
        return []
    before = dict(_stacks(repository, base)) if base else {}
    return [
        stack
        for stack, files in _stacks(repository, head)
        if before.get(stack) != files or "" in files.values()
    ]


def _stacks(
    repository: Repository, commit: str
) -> Iterator[tuple[RepositoryStack, dict[str, str]]]:
    """Yield each stack with a spec, and the files that `pulumi up` reads for it, with what identifies them."""
    tree, files = CommitTree(repository, commit), commit_files(repository, commit)
    folders = sorted({path.parent for path in files if path.name in PROJECT_FILES})
    for folder, pulumi in pulumi_projects(tree, files, folders):
        paths = program_paths(folder, pulumi)
        stack_files = {
            match[1]: path
            for path in sorted(files)
            if path.parent == paths.stacks and (match := _STACK_FILE.fullmatch(path.name))
        }
        contents = read_files(tree, [*stack_files.values()])
        for name, path in stack_files.items():
            # The engine reads the file that has the ending of the project file.
            if pulumi is None or path.suffix != Path(pulumi.file).suffix:
                continue
            config = stack_config(pulumi, read_bytes(contents.get(path, b""), path.name))
            named = config.get(f"{pulumi.name}:spec")
            spec = normalize_path(folder, named.text if named and named.text else SPEC_NAME)
            if spec in files:
                others = {*stack_files.values()} - {path}  # program_files lists those of all stacks
                read = program_files(tree, paths, [spec])
                yield (
                    RepositoryStack(folder.as_posix(), name),
                    {
                        file: identity
                        for file, identity in read.items()
                        if normalize_path(folder, file) not in others
                    },
                )
