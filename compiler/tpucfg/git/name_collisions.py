"""Names that a change adds and that are the same as others where a file system ignores case."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.tree_change import TreeChange

_MAX_COLLISIONS: Final = 1000
_INVISIBLE: Final = "Cf"


class NameCollision(NamedTuple):
    """Two files or folders of one name, for a file system that ignores case."""

    added: PurePosixPath
    other: PurePosixPath


def name_collisions(tree: TreeChange) -> tuple[NameCollision, ...]:
    """Return the files and folders that head adds and that are others of head but for case, or how they are encoded."""
    added = _with_parents(tree.changed & tree.after - tree.before) - _with_parents(tree.before)
    if not added:
        return ()
    return tuple(sorted(islice(_collisions(added, _with_parents(tree.after)), _MAX_COLLISIONS)))


def _collisions(added: Collection[PurePosixPath], present: Iterable[PurePosixPath]) -> Iterator[NameCollision]:
    """Yield each added path with one other of its folder; of two added ones, the later."""
    by_name: dict[str, set[PurePosixPath]] = {_folded(path): set() for path in added}
    for path in present:
        if (folded := _folded(path)) in by_name:
            by_name[folded].add(path)
    for path in added:
        siblings = (other for other in by_name[_folded(path)] if other.parent == path.parent)
        others = [other for other in siblings if other != path and (other not in added or other < path)]
        if others:
            yield NameCollision(path, min(others))


def _with_parents(paths: Iterable[PurePosixPath]) -> frozenset[PurePosixPath]:
    folders: set[PurePosixPath] = set()
    for path in paths:
        for part in (path, *path.parents[:-1]):
            if part in folders:
                break
            folders.add(part)
    return frozenset(folders)


def _folded(path: PurePosixPath) -> str:
    text = str(path)
    if text.isascii():
        return text.lower()
    visible = "".join(char for char in text if unicodedata.category(char) != _INVISIBLE)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold())
