"""Compare a file with what is rendered: what `extra` may add, and what differs for good."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.paths import (
    ITEM_NAMES,
    KeyPath,
    first_match,
    is_object_list,
    leaf_paths,
    matches,
    value_at,
    values_at,
)
from tpucfg.plan.rung import decimal_text
from tpucfg.targets.gke.nodes import CHIPS
from tpucfg.yamldoc.reader import read_file

# A request body as the server reads it, in which two spellings of one job are equal.
#
# Nulls, empty lists and what the server writes itself (server_view.yaml) are absent. The names of jobs and containers
# have no effect on what runs, so they become those of the rendered config. A pod that asks for chips tolerates their
# taint: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration.

_CONTAINER: Final = "spec.replicatedJobs.*.template.spec.template.spec.containers.*"
_POD: Final = _CONTAINER.removesuffix(".containers.*")
_MEANINGFUL_EMPTY: Final = ("emptyDir", "spot", "guaranteed")
"""Keys whose presence is the choice, with or without fields below."""
_NAMES: Final = {
    "container": (f"{_CONTAINER}.name", "**.onExitCodes.containerName"),
    "volume": (f"{_POD}.volumes.*.name", f"{_CONTAINER}.volumeMounts.*.name"),
    "job": ("spec.replicatedJobs.*.name", "**.targetReplicatedJobs.*"),
}
"""The names that have no effect on what runs: where each kind is defined, and where it is referred to."""
_REPEATED_LABELS: Final = ((f"{_POD.removesuffix('.spec')}.metadata.labels.**", True),)
"""The labels of pods, which repeat those of their JobSet."""
_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
_DECIMAL: Final = re.compile(r"(?<==)[0-9]{1,9}\.[0-9]{1,9}(?![\w.])")
_FLAG: Final = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*)=(.*)", re.DOTALL)


class Note(NamedTuple):
    """A field that the spec does not have, or that its config has otherwise."""

    path: KeyPath
    """The path in the file; empty if it is about the whole file."""
    reason: str
    """The consequence, and the edit if there is one."""

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.reason}" if self.path else self.reason


@cache
def tables() -> dict[str, Any]:
    """Return what the server writes itself, and what no import carries over."""
    tables: dict[str, Any] = read_file(Path(__file__).with_name("server_view.yaml")).data
    return tables


def server_view(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request body without nulls, defaults of the server and what the server writes itself."""
    view: dict[str, Any] = _cleaned(deepcopy(dict(body)), ())
    for _, resources in values_at(view, f"{_CONTAINER}.resources"):
        # The server copies requests from the limits.
        requests = resources.pop("requests", {}) if isinstance(resources, dict) else {}
        limits = resources.get("limits", {}) if requests else {}
        if own := {
            name: amount
            for name, amount in requests.items()
            if str(limits.get(name)) != str(amount)
        }:
            resources["requests"] = own
    return view


def with_one_line(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return a view in which `args` are part of `command`; without a command, the image's own comes first."""
    joined = deepcopy(dict(view))
    for pattern in (_CONTAINER, "workerPoolSpecs.*.containerSpec"):
        for _, container in [*values_at(joined, pattern)]:
            if container.get("command"):
                container["command"] = [*container["command"], *container.pop("args", ())]
    return joined


def left_out(view: dict[str, Any]) -> list[Note]:
    """Remove the fields that no import carries over from a view, and return a note for each."""
    removed = [
        Note(path, reason)
        for pattern, reason in tables()["left_out"].items()
        for path, _ in values_at(view, pattern)
    ]
    for path, _ in removed:
        parent = value_at(view, path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
            if not parent:
                value_at(view, path[:-2], {}).pop(path[-2], None)
    return removed


def renamed(view: dict[str, Any], rendered: Mapping[str, Any]) -> dict[str, Any]:
    """Return a view with the names of another: those of containers and jobs by position, of volumes by mount point."""
    original, view = view, deepcopy(view)
    for kind, patterns in _NAMES.items():
        ours = _identified(rendered, kind)
        names = {
            name: ours[key] for key, name in _identified(original, kind).items() if key in ours
        }
        for pattern in patterns:
            for path, name in [*values_at(view, pattern)]:
                parent = value_at(view, path[:-1])
                if isinstance(name, str) and isinstance(parent, dict | list):
                    parent[path[-1]] = names.get(name, name)  # type: ignore[index] # the path exists
    return view


def reader(*bodies: Any, jobs: Iterable[str]) -> Callable[[Any], Any]:
    """Return the function that reads a value as the program gets it: two values are equal if their readings are.

    Kubernetes expands `$(NAME)` of a variable of the container, and reads `$$` as `$`. The job's name stands for
    itself, and a decimal number for its value. The order of `name=value` words in a command line has no effect, save
    for one name given twice.
    """
    names = {name for body in bodies for _, name in values_at(body, "**.env.*.name")}
    pattern = "|".join(sorted(map(re.escape, filter(None, jobs)), key=len, reverse=True))
    job_name = re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])") if pattern else None

    def read(value: Any) -> Any:
        if isinstance(value, str):
            text = expand(value, names)
            text = _DECIMAL.sub(lambda number: decimal_text(Fraction(number[0])), text)
            return job_name.sub("\0job", text) if job_name else text
        if isinstance(value, list):
            return sorted(map(read, value), key=_flag_name)
        if type(value) is int:  # JSON of Google's APIs has large numbers as texts
            return str(value)
        return (
            {key: read(item) for key, item in value.items()} if isinstance(value, dict) else value
        )

    return read


def expand(text: str, names: Iterable[str] = ()) -> str:
    """Return a text as Kubernetes passes it on, with a mark for each reference to one of the variables.

    https://github.com/kubernetes/kubernetes/blob/v1.34.1/third_party/forked/golang/expansion/expand.go
    """
    known = {*names}

    def replacement(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return f"\0({match[1]})" if match[1] in known else match[0]

    # Without a ) in the rest, the pattern would search it to the end from each of its $(, in quadratic time.
    end = text.rfind(")") + 1
    return _REFERENCE.sub(replacement, text[:end]) + text[end:].replace("$$", "$")


def is_written_by_server(path: KeyPath) -> bool:
    """Return True for a field that the server writes, and for the name of a job."""
    return any(matches(pattern, path) for pattern in tables()["written_by_server"])


def _cleaned(value: Any, path: KeyPath) -> Any:
    if isinstance(value, dict):
        items = (
            (key, _cleaned(item, (*path, key)))
            for key, item in value.items()
            if not _is_absent(item, (*path, key))
        )
        return {
            key: item for key, item in items if item not in ({}, []) or key in _MEANINGFUL_EMPTY
        }
    if isinstance(value, list):
        kept = [item for item in value if path[-1:] != ("tolerations",) or not _is_of_chips(item)]
        return [_cleaned(item, (*path, index)) for index, item in enumerate(kept)]
    return value


def _is_absent(value: Any, path: KeyPath) -> bool:
    if value is None or is_written_by_server(path):
        return True
    default = first_match(tables()["defaults"].items(), path)
    return default is not None and type(default) is type(value) and default == value


def _flag_name(word: Any) -> str:
    """Return the name of a `name=value` text; empty for any other value, which keeps its place before those."""
    match = _FLAG.fullmatch(word) if isinstance(word, str) else None
    return match[1] if match else ""


def _is_of_chips(toleration: Any) -> bool:
    """Return True for a toleration of the nodes with TPUs, which the server adds to each pod that asks for chips."""
    if not isinstance(toleration, dict) or toleration.get("key") != CHIPS:
        return False
    return (
        toleration.get("operator") == "Exists"
        and toleration.get("effect", "NoSchedule") == "NoSchedule"
    )


def _identified(body: Any, kind: str) -> dict[Any, str]:
    """Return the names of parts by what identifies them: their position, or the mount point of a volume."""
    if kind == "volume":
        mounts = (
            mount
            for _, mount in values_at(body, f"{_CONTAINER}.volumeMounts.*")
            if isinstance(mount, dict)
        )
        return {str(mount.get("mountPath")): str(mount.get("name")) for mount in mounts}
    return {path: name for path, name in values_at(body, _NAMES[kind][0]) if isinstance(name, str)}


# The comparison.


_MISSING: Final = "no key of a spec sets it"
_ADDED: Final = "the file does not have it, and tpucfg renders it"
_DIFFERS: Final = "tpucfg renders another value"


class ValueDifferences(NamedTuple):
    """The differences of two values."""

    extra: Any
    """The part of the file that the rendered value lacks, in the form of `extra`; None if there is none."""
    notes: tuple[Note, ...]
    """The differences that `extra` cannot repair: values that differ, or that only the rendered config has."""
    missing: tuple[Note, ...] = ()
    """The values of that part."""


def compare(
    file: Any, rendered: Any, read: Callable[[Any], Any], path: KeyPath = ()
) -> ValueDifferences:
    """Compare a value of the file with the rendered one; `read` returns a value as the program gets it."""
    if isinstance(file, dict) and isinstance(rendered, dict):
        return _compare_mappings(file, rendered, read, path)
    if is_object_list(file) and is_object_list(rendered):
        return _compare_items(file, rendered, read, path)
    return ValueDifferences(None, () if read(file) == read(rendered) else (_different(path),))


def _different(path: KeyPath) -> Note:
    return Note(path, first_match(tables()["reasons"].items(), path) or _DIFFERS)


def path_in(extra: Any, other: Any, path: KeyPath) -> KeyPath:
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
) -> ValueDifferences:
    extra: dict[str, Any] = {}
    added = [
        leaf
        for key in rendered
        if key not in file
        for leaf in leaf_paths(rendered[key], (*path, key))
    ]
    notes = [Note(leaf, _ADDED) for leaf in added if not first_match(_REPEATED_LABELS, leaf)]
    missing: list[Note] = []
    for key, value in file.items():
        if key not in rendered:
            extra[key] = value
            missing += _missing(value, (*path, key))
            continue
        part = compare(value, rendered[key], read, (*path, key))
        notes += part.notes
        missing += part.missing
        if part.extra is not None:
            extra[key] = part.extra
    return ValueDifferences(extra or None, tuple(notes), tuple(missing))


def _missing(value: Any, path: KeyPath) -> Iterator[Note]:
    return (Note(leaf, _MISSING) for leaf in leaf_paths(value, path))


def _compare_items(
    file: list[Any], rendered: list[Any], read: Callable[[Any], Any], path: KeyPath
) -> ValueDifferences:
    """Compare lists of mappings, whose items `extra` merges by their name, else by position."""
    key = next(
        (
            key
            for key in ITEM_NAMES
            if all(isinstance(item.get(key), str) for item in (*file, *rendered))
        ),
        None,
    )
    ours = {item[key] if key else index: item for index, item in enumerate(rendered)}
    extra: list[Any] = []
    notes: list[Note] = []
    missing: list[Note] = []
    for index, item in enumerate(file):
        name = item[key] if key else index
        if name not in ours:
            extra.append(item)
            missing += _missing(item, (*path, index))
            continue
        part = compare(item, ours.pop(name), read, (*path, index))
        notes += part.notes
        missing += part.missing
        if part.extra or not key:  # an item without a name keeps its position
            extra.append({key: name, **part.extra} if key else part.extra or {})
    if not key and ours:  # only the order distinguishes items without names
        return ValueDifferences(None, (_different(path),))
    notes += [Note((*path, name), _ADDED) for name in ours]
    return ValueDifferences(extra if any(extra) else None, tuple(notes), tuple(missing))
