"""Export files of a commit to a folder: regular files only, limited in size and number, never outside the folder."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from tpucfg.git.objects import TreeEntry, read_contents
from tpucfg.git.repository import Repository, RevisionError

MAX_FILE_BYTES: Final = 1 << 20
"""The limit that a spec has too; source files of a stack program are far smaller."""
MAX_RECORD_BYTES: Final = 4 << 20
"""The limit for files of records, as for reading them: a padded file must not hide a record from a review."""
_RECORDS: Final = ".jsonl"
FIT_FILE: Final = PurePosixPath("results", "fit.json")
"""The results of `tpucfg fit`, relative to a spec's folder."""
MAX_FIT_BYTES: Final = 8 << 20
"""The limit for these results, as for reading them."""
MAX_EXPORT_BYTES: Final = 1 << 26
"""The limit for all files together."""
MAX_FILES: Final = 5_000


def export_files(repository: Repository, entries: Iterable[TreeEntry], folder: Path) -> frozenset[TreeEntry]:
    """Write the regular files below the folder; return those that were skipped because of a limit.

    Raises:
        RevisionError: A file cannot be read or written.
    """
    chosen: list[TreeEntry] = []
    remaining_bytes = MAX_EXPORT_BYTES
    skipped = []
    for entry in entries:
        if not entry.is_regular:
            continue
        if entry.size > min(_max_bytes(entry.path), remaining_bytes) or len(chosen) >= MAX_FILES:
            skipped.append(entry)
            continue
        chosen.append(entry)
        remaining_bytes -= entry.size
    for entry, content in zip(chosen, read_contents(repository, chosen), strict=True):
        _write_new_file(folder / entry.path, content)
    return frozenset(skipped)


def _max_bytes(path: PurePosixPath) -> int:
    if path.parts[-2:] == FIT_FILE.parts:
        return MAX_FIT_BYTES
    return MAX_RECORD_BYTES if path.suffix == _RECORDS else MAX_FILE_BYTES


def _write_new_file(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Mode x never follows or overwrites an existing file.
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return  # two paths that are one for this file system, or a file that is exported twice
    except OSError as error:
        raise RevisionError(f"{path.name} cannot be exported: {error.strerror or error}") from None
