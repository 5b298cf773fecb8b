"""The folder of the config files: files are compared, then staged, then moved to their paths one by one.

At any moment, each file has its old or its new content. No file is written through a symbolic link in the folder.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from tpucfg.fs import explain_error, is_file, output_lock, sorted_glob, staged_files
from tpucfg.named_tuple import NamedTuple
from tpucfg.refusal import RefusalError

_CONFIG_NAME: Final = re.compile(r"config\.(?:yaml|json)")
_SIZE_NAME: Final = re.compile(r"[a-z0-9]{1,20}-[0-9]{1,6}(x[0-9]{1,3})?")
_HEADER: Final = b"# Made by tpucfg "
"""The first bytes of every config in YAML."""
_MOVE_AWAY: Final = "move it away, or choose another folder"
_BLOCKED: Final = (errno.ENOTDIR, errno.EEXIST, errno.ENOENT)
"""The error numbers of a path that contains something other than a folder."""


class OutputError(RefusalError):
    """An output folder that cannot be read or written; every file in it is still complete."""


class FileChange(NamedTuple):
    """A change to one file."""

    # Paths are strings throughout this module: joining Path objects takes longer than opening the file.
    path: str
    """The file's path below the output folder, with slashes."""
    kind: Literal["create", "update", "remove"]


def compare_files(out: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """Return the files that would be created or updated, sorted by path.

    Raises:
        OutputError: The folder cannot be read, or a symbolic link leads out of it.
    """
    missing: set[str] = set()
    for folder in sorted(_folders_of(files)):  # a folder is sorted after its parent
        if _parent(folder) in missing or not _folder_exists(f"{out}/{folder}"):
            missing.add(folder)
    changes = (
        FileChange(path, "create")
        if _parent(path) in missing
        else _compare(f"{out}/{path}", path, files[path])
        for path in sorted(files)
    )
    return tuple(change for change in changes if change)


def stale_files(
    out: Path, folders: Iterable[str], wanted: Iterable[str], *, is_probe: bool = False
) -> tuple[FileChange, ...]:
    """Return the configs at `<folder>/<env>/<size>/config.*` that are no longer wanted, sorted by path.

    Those of probes, in a folder `probe` of the size, are looked at alone, so that each kind is pruned by itself.
    """
    # Compared by folder, because a job's config in the other format may be in use as well.
    wanted_folders = {_parent(path) for path in wanted}
    paths = (path for folder in folders for path in _configs_below(out, folder, is_probe=is_probe))
    return tuple(
        FileChange(path, "remove") for path in sorted(paths) if _parent(path) not in wanted_folders
    )


def apply_changes(out: Path, changes: Sequence[FileChange], files: Mapping[str, str]) -> None:
    """Write and remove files as the changes require. All files are staged before the first is moved to its path.

    Raises:
        OutputError: Something could not be written; the staged files are removed.
    """
    try:
        with output_lock(out, {_parent(f"{out}/{change.path}") for change in changes}):
            with staged_files() as stage:
                for change in changes:
                    if change.kind != "remove":
                        with stage(f"{out}/{change.path}") as file:
                            file.write(files[change.path].encode())
            for change in changes:
                if change.kind == "remove":
                    _remove(out, change.path)
    except OSError as error:
        raise _output_error(error, out) from None


def _remove(out: Path, path: str) -> None:
    (out / path).unlink(missing_ok=True)
    for parent in Path(path).parents[:-1]:
        try:
            (out / parent).rmdir()
        except OSError:  # the folder contains something else, which stays
            return


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Return every parent folder of the paths."""
    folders: set[str] = set()
    for path in paths:
        folder = _parent(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = _parent(folder)
    return folders


def _folder_exists(folder: str) -> bool:
    """Return True if the folder exists.

    Raises:
        OutputError: It is a symbolic link.
    """
    try:
        is_link = _is_link(folder)
    except FileNotFoundError:
        return False
    if is_link:
        raise OutputError(
            f"{Path(folder)} is a symbolic link, and the files below it would be written outside the output folder",
            "remove the link, or choose another folder",
        )
    return True


def _compare(location: str, path: str, text: str) -> FileChange | None:
    wanted = text.encode()
    current = _read(location, len(wanted) + 1)  # one byte more shows that the file is longer
    if current is None:
        return FileChange(path, "create")
    return None if current == wanted else FileChange(path, "update")


def _read(path: str | Path, max_bytes: int) -> bytes | None:
    """Return the start of a file, None if it is missing, and no bytes for a symbolic link, which will be replaced.

    Raises:
        OutputError: It cannot be read, or is not a regular file.
    """
    try:
        # Opening a pipe without O_NONBLOCK would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(max_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP and _is_link(path):
            return b""
        raise _output_error(error, path) from None
    raise OutputError(f"{path}: expected a file, found a pipe or a device", _MOVE_AWAY)


def _is_link(path: str | Path) -> bool:
    """Return True if the path is a symbolic link.

    Raises:
        FileNotFoundError: There is nothing at the path.
        OutputError: The path cannot be followed.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _output_error(error, path) from None


def _configs_below(out: Path, folder: str, *, is_probe: bool) -> Iterator[str]:
    for path in sorted_glob(out / folder, "*/*/probe/config.*" if is_probe else "*/*/config.*"):
        relative = path.relative_to(out)
        is_linked = any((out / parent).is_symlink() for parent in relative.parents[:-1])
        size = path.parents[1 if is_probe else 0].name
        if _CONFIG_NAME.fullmatch(path.name) and not is_linked and _is_own_config(path, size):
            yield relative.as_posix()


def _is_own_config(path: Path, size: str) -> bool:
    """Return True if tpucfg wrote this file, in the folder of a size: any other file is never removed."""
    if not _SIZE_NAME.fullmatch(size) or path.is_symlink() or not is_file(path):
        return False
    if (
        path.suffix == ".json"
    ):  # JSON has no header comment, so the folder's name, a size, must be enough
        return True
    return _read(path, len(_HEADER)) == _HEADER


def _output_error(error: OSError, path: str | Path) -> OutputError:
    name = error.filename2 or error.filename
    failed_path = (
        name if isinstance(name, str) else str(path)
    )  # an error of an open file has its descriptor as the name
    if error.errno in _BLOCKED and (obstacle := _obstacle(failed_path)):
        kind = "a broken link" if obstacle.is_symlink() else "a file"
        return OutputError(f"{obstacle}: expected a folder, found {kind}", _MOVE_AWAY)
    reason, hint = explain_error(error)
    return OutputError(f"{failed_path}: {reason}", f"{hint}; or choose another folder")


def _obstacle(path: str) -> Path | None:
    """Return the first part of a path that exists and is not a folder."""
    parts = (*reversed(Path(path).parents), Path(path))
    return next((part for part in parts if os.path.lexists(part) and not part.is_dir()), None)
