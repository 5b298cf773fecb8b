"""Hashes of a program's files in a commit.

An export leaves out links and what exceeds its limits, so a result of such a file would look outdated.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from tpucfg.fit.program_files import MAX_FILE_BYTES, ProgramFiles, content_hash
from tpucfg.git.repository import Blob, Repository, TreeEntry, follow_paths, read_contents
from tpucfg.git.snapshots import Snapshot

_MAX_BYTES: Final = 1 << 26
"""The limit for all files of a revision together."""
_LINE_BREAK: Final = "\n"


class CommittedProgramFiles(ProgramFiles):
    """The files below a spec's folder in a commit, each read at most once; links inside the commit are followed."""

    def __init__(self, repository: Repository, commit: str, folder: PurePosixPath) -> None:
        super().__init__(repository.folder)
        self._repository = repository
        self._prefix = f"{commit}:{folder.as_posix()}/" if folder.parts else f"{commit}:"
        self._known: dict[str, str | None] = {}
        self._remaining_bytes = _MAX_BYTES

    def hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return the hashes of the files that can be read, by path relative to the folder."""
        wanted = [*dict.fromkeys(paths)]
        self._read([path for path in wanted if path not in self._known])
        known = {path: self._known[path] for path in wanted}
        return {path: value for path, value in known.items() if value}

    def hash(self, path: str) -> str | None:
        """Return the hash of one file; None if it cannot be read, or is too large for a program's file."""
        return self.hashes([path]).get(path)

    def _read(self, paths: Sequence[str]) -> None:
        """Hash files that were not read before, all of them by two git processes."""
        self._known.update(dict.fromkeys(paths))
        # One line is one request to git, which resolves dots that lead out of the folder.
        asked = [path for path in paths if _LINE_BREAK not in path and ".." not in path.split("/")]
        blobs = zip(asked, follow_paths(self._repository, [self._prefix + path for path in asked]), strict=True)
        chosen = {path: blob for path, blob in blobs if blob and self._has_room_for(blob)} if asked else {}
        entries = [TreeEntry(PurePosixPath(path), "file", blob.id, blob.size) for path, blob in chosen.items()]
        for path, content in zip(chosen, read_contents(self._repository, entries), strict=True):
            self._known[path] = content_hash(content)

    def _has_room_for(self, blob: Blob) -> bool:
        """Return True for a file within the limits, and count it."""
        if blob.kind != "blob" or blob.size > min(MAX_FILE_BYTES, self._remaining_bytes):
            return False
        self._remaining_bytes -= blob.size
        return True


def program_files(snapshot: Snapshot) -> ProgramFiles:
    """Return the files below the folder of a snapshot's spec."""
    folder = snapshot.spec.parent
    if snapshot.repository is None or snapshot.commit is None or snapshot.exported_to is None:
        return ProgramFiles(folder)
    relative = PurePosixPath(folder.relative_to(snapshot.exported_to).as_posix())
    return CommittedProgramFiles(snapshot.repository, snapshot.commit.id, relative)
