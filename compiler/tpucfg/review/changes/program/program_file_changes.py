"""Changed files that `pulumi up` reads: those that a review cannot compare, other code, packages, and the program."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.git.program_files import ATTRIBUTES, PACKAGE_FILES, FileVersion
from tpucfg.infra.pulumi_project import PROJECT_FILES
from tpucfg.text_format import listed

_MAX_NAMED: Final = 5
"""Files that have a sentence of their own; of more, the first are named in one sentence."""
_MAX_LISTED: Final = 6
_UNREAD: Final = "files changed that this review does not read"
_KINDS: Final = {
    "link": "is a symbolic link to {1}: Pulumi reads what it leads to, and this review does not",
    "submodule": "is a submodule: Pulumi reads its files, and this review does not",
    "large": "is too large: Pulumi reads it, and this review does not",
    "excess": "is one of more files than this review reads",
}
_MANY: Final = {
    "link": "symbolic links",
    "submodule": "submodules",
    "large": "too large",
    "excess": "more files than this review reads",
}
_COMPILED: Final = frozenset({".pyc", ".pyo", ".pyd", ".so", ".dll", ".dylib"})
_FILES_BY_TOOLCHAIN: Final = {
    "pip": frozenset({"requirements.txt", ".python-version"}),
    "uv": frozenset(PACKAGE_FILES) - {"poetry.lock", "poetry.toml"},
    "poetry": frozenset(PACKAGE_FILES) - {"uv.lock", "uv.toml"},
}
"""The files that a toolchain reads: https://github.com/pulumi/pulumi/tree/master/sdk/python/toolchain."""


class ReadFiles(NamedTuple):
    """Settings of both revisions that decide which files Pulumi reads."""

    other_code: tuple[str, ...]
    """The paths of code that it runs besides the program."""
    toolchains: Collection[str]
    """The tools that install the program's packages, as the project files name them."""
    settings: Collection[str]
    """The project and stack files, whose content is compared by key."""
    has_program: bool
    """True if head has a program of its own."""


class _Role(NamedTuple):
    """The meaning of a changed file."""

    template: str
    """A sentence about the files; empty for files that need none."""
    risk: Risk = Risk.NONE
    headline: str = ""


_OTHER_CODE: Final = _Role(
    "code that Pulumi runs besides the program changed: {0}", Risk.DESTRUCTIVE, "code besides the program changed"
)
_COMPILED_CODE: Final = _Role(
    "compiled code in the stack program changed: {0}. Python may run it instead of the source, and no one can read it",
    Risk.DESTRUCTIVE,
    "compiled code changed",
)
_OTHER_PROJECT: Final = _Role(
    "another project file changed: {0}. Pulumi reads it instead if it runs in that folder",
    Risk.DESTRUCTIVE,
    "settings of Pulumi changed",
)
_ATTRIBUTES: Final = _Role(
    "{0} changed: git may check out other contents than this review has read, by filters, encodings or expanded ids",
    Risk.UNKNOWN,
)
_PACKAGES: Final = _Role(
    "{0} changed: Pulumi may run the program with other packages than this review did", Risk.UNKNOWN
)
_PROGRAM: Final = _Role(
    "stack program changed in {0}: this review knows only the resources that it declares under mocks", Risk.UNKNOWN
)
_SILENT: Final = _Role("")


class _FileChange(NamedTuple):
    """A file that differs between both revisions, or that cannot be compared."""

    path: str
    old: FileVersion | None
    new: FileVersion | None

    @property
    def is_read(self) -> bool:
        """True if head has the file as a file that the review reads, or not at all."""
        return self.new is None or self.new.kind == "file"

    @property
    def was_unread(self) -> bool:
        """True if base has the file in a form that the review does not read."""
        return self.old is not None and self.old.kind != "file"


def file_statements(
    before: Sequence[FileVersion], after: Sequence[FileVersion], read: ReadFiles
) -> Iterator[Statement]:
    """Yield what changed in the files that `pulumi up` reads, without the settings in project and stack files."""
    changes = [*_changes(before, after)]
    yield from _unread_statements([change for change in changes if not change.is_read])
    yield from _formerly_unread(changes)
    paths_by_role: dict[_Role, list[str]] = {}
    for change in changes:
        role = _role(change.path, read)
        # The program's files that were unread in the base have a sentence already.
        if change.is_read and not (role is _PROGRAM and change.was_unread):
            paths_by_role.setdefault(role, []).append(change.path)
    for role, paths in paths_by_role.items():
        if role.template and (role is not _PROGRAM or read.has_program):
            yield Statement(role.template, (listed(paths, _MAX_LISTED),), role.risk, role.headline)


def _role(path: str, read: ReadFiles) -> _Role:
    file = PurePosixPath(path)
    lineage = {file, *file.parents}
    is_package_file = any(file.name in _FILES_BY_TOOLCHAIN.get(tool, PACKAGE_FILES) for tool in read.toolchains)
    roles = (
        (any(PurePosixPath(os.path.normpath(folder)) in lineage for folder in read.other_code), _OTHER_CODE),
        (path in read.settings, _SILENT),
        (file.suffix in _COMPILED, _COMPILED_CODE),
        # Beside the project file that the engine reads, one of another name has no effect.
        (file.name in PROJECT_FILES, _OTHER_PROJECT if len(file.parts) > 1 else _SILENT),
        (file.name == ATTRIBUTES, _ATTRIBUTES),
        (file.name in PACKAGE_FILES, _PACKAGES if is_package_file else _SILENT),
    )
    return next((role for applies, role in roles if applies), _PROGRAM)


def _changes(before: Sequence[FileVersion], after: Sequence[FileVersion]) -> Iterator[_FileChange]:
    old: Mapping[str, FileVersion] = {version.path: version for version in before}
    new: Mapping[str, FileVersion] = {version.path: version for version in after}
    for path in sorted({*old, *new}):
        change = _FileChange(path, old.get(path), new.get(path))
        # Without an id, two equal versions may lead to different contents.
        if change.old != change.new or (change.new and not change.new.id):
            yield change


def _unread_statements(changes: Sequence[_FileChange]) -> Iterator[Statement]:
    for kind, text in _KINDS.items():
        of_kind = [change for change in changes if change.new and change.new.kind == kind]
        for change in of_kind[:_MAX_NAMED]:
            # An unchanged link out of the repository is not new, but its content may be.
            risk = Risk.UNKNOWN if change.old == change.new else Risk.DESTRUCTIVE
            target = change.new.target if change.new else ""
            yield Statement(f"{{0}} {text}", (change.path, target), risk, "" if risk is Risk.UNKNOWN else _UNREAD)
        if more := of_kind[_MAX_NAMED:]:
            names = listed([change.path for change in more], _MAX_LISTED)
            template = f"{len(more):,} more files are {_MANY[kind]}, which this review does not read: {{0}}"
            yield Statement(template, (names,), Risk.DESTRUCTIVE, _UNREAD)


def _formerly_unread(changes: Sequence[_FileChange]) -> Iterator[Statement]:
    """Yield the files that head has as a file or not at all, and base in a form that this review does not read."""
    formerly = [change for change in changes if change.is_read and change.was_unread]
    for change in formerly[:_MAX_NAMED]:
        kind, target = (change.old.kind, change.old.target) if change.old else ("", "")
        verb = "replaced by a file" if change.new else "removed"
        yield Statement(f"{{0}} {verb}: in the base it {_KINDS[kind]}", (change.path, target), Risk.UNKNOWN)
    if more := formerly[_MAX_NAMED:]:
        names = listed([change.path for change in more], _MAX_LISTED)
        template = f"{len(more):,} more files are no links, submodules or large files any longer: {{0}}"
        yield Statement(template, (names,), Risk.UNKNOWN)
