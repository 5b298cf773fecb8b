"""Compare a file with what is rendered: what `extra` may add, and what differs for good."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from tpucfg.findings import MAX_FINDINGS
from tpucfg.importing.server_view import tables
from tpucfg.paths import ITEM_NAMES, KeyPath, first_match, leaf_paths, value_at

NOTHING: Final = object()
_MISSING: Final = "no key of a spec sets it"
_ADDED: Final = "the file does not have it, and tpucfg renders it"
_DIFFERS: Final = "tpucfg renders another value"


class Note(NamedTuple):
    """A field that the spec does not have, or that its config has otherwise."""

    path: KeyPath
    """The path in the file; empty if it is about the whole file."""
    reason: str
    """The consequence, and the edit if there is one."""
    differs: bool = True
    """False if the config is still equal to the file as far as `tpucfg import` promises."""

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.reason}" if self.path else self.reason


class Comparison(NamedTuple):
    """The differences of two values."""

    extra: Any
    """The part of the file that the rendered value lacks, in the form of `extra`; NOTHING if there is none."""
    notes: tuple[Note, ...]
    """The differences that `extra` cannot repair: values that differ, or that only the rendered config has."""


def compare(file: Any, rendered: Any, read: Callable[[Any], Any], path: KeyPath = ()) -> Comparison:
    """Compare a value of the file with the rendered one; `read` returns a value as the program gets it."""
    if isinstance(file, dict) and isinstance(rendered, dict):
        return _compare_mappings(file, rendered, read, path)
    if _is_object_list(file) and _is_object_list(rendered):
        return _compare_items(file, rendered, read, path)
    return Comparison(NOTHING, () if read(file) == read(rendered) else (_different(path),))


def _different(path: KeyPath) -> Note:
    return Note(path, first_match(tables()["reasons"].items(), path) or _DIFFERS)


def missing(extra: Any, view: Any) -> tuple[Note, ...]:
    """Return a note for each value of the view that the rendered config still lacks, up to a limit."""
    paths = () if extra is NOTHING else islice(leaf_paths(extra), MAX_FINDINGS + 1)
    return tuple(Note(place, _MISSING) for path in paths if (place := file_path(extra, view, path)))


def file_path(extra: Any, view: Any, path: KeyPath) -> KeyPath:
    """Return the path in a view of a value of `extra`, whose items have other positions; () for an item's name."""
    return () if path[-1:] == ("name",) and isinstance(path[-2], int) else counterpart(extra, view, path)


def counterpart(extra: Any, other: Any, path: KeyPath) -> KeyPath:
    """Return the path of a value of `extra` in another value, up to the first item of a list that the other lacks."""
    place: KeyPath = ()
    for step in path:
        extra = value_at(extra, (step,))
        if isinstance(step, int):
            items = other if isinstance(other, list) else []
            names, name = [*map(item_name, items)], item_name(extra)
            if name not in names if name else step >= len(items):
                return place
            place = (*place, names.index(name) if name else step)
        else:
            place = (*place, step)
        other = value_at(other, place[-1:])
    return place


def item_name(item: Any) -> str | None:
    """Return the name by which `extra` merges an item of a list; None for an item that has none."""
    names = (item.get(key) for key in ITEM_NAMES) if isinstance(item, dict) else ()
    return next((name for name in names if isinstance(name, str)), None)


def _compare_mappings(
    file: Mapping[str, Any], rendered: Mapping[str, Any], read: Callable[[Any], Any], path: KeyPath
) -> Comparison:
    extra: dict[str, Any] = {}
    added = {key: value for key, value in rendered.items() if key not in file}
    notes = [Note(leaf, _ADDED) for key, value in added.items() for leaf in leaf_paths(value, (*path, key))]
    for key, value in file.items():
        if key not in rendered:
            extra[key] = value
            continue
        part = compare(value, rendered[key], read, (*path, key))
        notes += part.notes
        if part.extra is not NOTHING:
            extra[key] = part.extra
    return Comparison(extra or NOTHING, tuple(notes))


def _compare_items(file: list[Any], rendered: list[Any], read: Callable[[Any], Any], path: KeyPath) -> Comparison:
    """Compare lists of mappings, whose items `extra` merges by their name, else by position."""
    key = next((key for key in ITEM_NAMES if all(isinstance(item.get(key), str) for item in (*file, *rendered))), None)
    ours = {item[key] if key else index: item for index, item in enumerate(rendered)}
    extra: list[Any] = []
    notes: list[Note] = []
    for index, item in enumerate(file):
        name = item[key] if key else index
        if name not in ours:
            extra.append(item)
            continue
        part = compare(item, ours.pop(name), read, (*path, index))
        notes += part.notes
        if part.extra is not NOTHING:
            extra.append({key: name, **part.extra} if key else part.extra)
        elif not key:
            extra.append({})
    if not key and ours:  # only the order distinguishes items without names
        return Comparison(NOTHING, (_different(path),))
    notes += [Note((*path, name), _ADDED) for name in ours]
    return Comparison(extra if any(extra) else NOTHING, tuple(notes))


def _is_object_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
