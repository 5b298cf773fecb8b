"""Configs as files: compared first, staged beside their places, then moved into them one by one.

A file is at any moment the old one or the new one. Nothing below the folder is written through a symbolic link.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tpucfg.fs import is_file, sorted_glob
from tpucfg.render.atomic_write import output_lock, staging_path, write_new_file

_CONFIG: Final = re.compile(r"config\.(?:yaml|json)")
_SIZE: Final = re.compile(r"[a-z0-9]{1,20}-[0-9]{1,6}")
_MADE_BY: Final = b"# Made by tpucfg "
"""How every config in YAML begins."""
_AWAY: Final = "move it away, or choose another folder"
_REASONS: Final = {
    errno.ENOSPC: ("the disk is full", "make room and run it again"),
    errno.EACCES: ("permission denied", "choose a folder that you may write to"),
    errno.EPERM: ("permission denied", "choose a folder that you may write to"),
    errno.EROFS: ("the file system is read-only", "choose another folder"),
    errno.EISDIR: ("a folder stands where a file is needed", _AWAY),
}
_BLOCKED: Final = (errno.ENOTDIR, errno.EEXIST, errno.ENOENT)
"""What the system says where something that is no folder is in the way."""


class OutputError(Exception):
    """The folder cannot be read or written; every file in it is still whole."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


class FileChange(NamedTuple):
    """What becomes of one file."""

    path: str
    """Below the folder, with slashes; a text, as everywhere here: to join a Path costs more than to open the file."""
    kind: Literal["create", "update", "remove"]


def compare_files(out: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """Which files would be created or updated, by path.

    Raises:
        TreeError: The folder cannot be read, or a symbolic link leads out of it.
    """
    absent: set[str] = set()
    for folder in sorted(_folders_of(files)):  # each behind the one that it is in
        if _above(folder) in absent or not _is_there(f"{out}/{folder}"):
            absent.add(folder)
    changes = (
        FileChange(path, "create") if _above(path) in absent else _change(f"{out}/{path}", path, files[path])
        for path in sorted(files)
    )
    return tuple(change for change in changes if change)


def stale_files(out: Path, folders: Iterable[str], wanted: Iterable[str]) -> tuple[FileChange, ...]:
    """The configs at `<folder>/<env>/<size>/config.*` that are not wanted any more, by path."""
    jobs = {_above(path) for path in wanted}  # a job's config in the other format is somebody's too
    found = (path for folder in folders for path in _configs(out, folder))
    return tuple(FileChange(path, "remove") for path in sorted(found) if _above(path) not in jobs)


def apply_changes(out: Path, changes: Sequence[FileChange], files: Mapping[str, str]) -> None:
    """Writes and removes what the changes say. Every file is staged before the first is moved into its place.

    Raises:
        TreeError: Something could not be written; what was staged is taken away again.
    """
    try:
        with output_lock(out, {_above(f"{out}/{change.path}") for change in changes}):
            _write(out, [change.path for change in changes if change.kind != "remove"], files)
            for change in changes:
                if change.kind == "remove":
                    _remove(out, change.path)
    except OSError as error:
        raise _explained(error, out) from None


def _write(out: Path, paths: Iterable[str], files: Mapping[str, str]) -> None:
    """All of them beside their places, then all into their places."""
    staged: dict[str, str] = {}
    try:
        for path in paths:
            source = staging_path(place := f"{out}/{path}")
            staged[source] = place  # before it is written, as Ctrl-C may come in the middle
            write_new_file(source, files[path])
        for source in list(staged):
            os.replace(source, staged[source])
            del staged[source]
    finally:
        for source in staged:
            Path(source).unlink(missing_ok=True)


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder on the way to one of the paths."""
    found: set[str] = set()
    for path in paths:
        folder = _above(path)
        while folder and folder not in found:
            found.add(folder)
            folder = _above(folder)
    return found


def _change(place: str, path: str, text: str) -> FileChange | None:
    wanted = text.encode()
    current = _read(place, len(wanted) + 1)
    if current is None:
        return FileChange(path, "create")
    return None if current == wanted else FileChange(path, "update")


def _read(place: str | Path, most: int) -> bytes | None:
    """The beginning of a file; None where there is none; nothing of a symbolic link, which is replaced, not followed.

    Raises:
        TreeError: It cannot be read, or is no file: whoever opens a pipe waits for somebody to write into it.
    """
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(most)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP and _is_link(place):
            return b""
        raise _explained(error, place) from None
    raise OutputError(f"{place}: a pipe or a device stands where a file is needed", _AWAY)


def _is_link(path: str | Path) -> bool:
    """Whether a symbolic link stands there.

    Raises:
        FileNotFoundError: Nothing does.
        TreeError: That cannot be found out.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _explained(error, path) from None


def _is_there(folder: str) -> bool:
    """Whether the folder is there already.

    Raises:
        TreeError: A symbolic link is in its place.
    """
    try:
        linked = _is_link(folder)
    except FileNotFoundError:
        return False
    if linked:
        raise OutputError(
            f"{Path(folder)} is a symbolic link: what belongs below it would be written to another place",
            "remove the link, or choose another folder",
        )
    return True


def _configs(out: Path, folder: str) -> Iterator[str]:
    for path in sorted_glob(out / folder, "*/*/config.*"):
        below = path.relative_to(out)
        linked = any((out / parent).is_symlink() for parent in below.parents[:-1])
        if _CONFIG.fullmatch(path.name) and not linked and _is_ours(path):
            yield below.as_posix()


def _is_ours(path: Path) -> bool:
    """Whether a file that stands where a config would was made by this tool: what others wrote is never removed."""
    if not _SIZE.fullmatch(path.parent.name) or path.is_symlink() or not is_file(path):
        return False
    if path.suffix == ".json":  # JSON has no comment to tell by, and a folder named like a size is ours
        return True
    return _read(path, len(_MADE_BY)) == _MADE_BY


def _remove(out: Path, path: str) -> None:
    (out / path).unlink(missing_ok=True)
    for parent in Path(path).parents[:-1]:
        try:
            (out / parent).rmdir()
        except OSError:  # it holds something else, which stays
            return


def _explained(error: OSError, place: str | Path) -> OutputError:
    reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), "choose another folder"))
    named = error.filename2 or error.filename
    at = named if isinstance(named, str) else str(place)  # where a file was open already, its number is named
    if error.errno in _BLOCKED and (found := _in_the_way(at)):
        kind = "a link that leads nowhere" if found.is_symlink() else "a file"
        return OutputError(f"{found}: {kind} stands where a folder is needed", _AWAY)
    return OutputError(f"{at}: {reason}", hint)


def _in_the_way(path: str) -> Path | None:
    """The first on the way to a path that is there and is no folder."""
    way = (*reversed(Path(path).parents), Path(path))
    return next((step for step in way if os.path.lexists(step) and not step.is_dir()), None)
