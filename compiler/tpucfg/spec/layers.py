"""Merge the layers of a spec: the settings of one environment and size, each with the path that it comes from.

Layered keys can be set at the top of the spec, in an environment, in a size's override and in a size's override within
an environment; the later in this order wins. Mappings merge key by key, and null takes a setting away. In the program's
args, where null is a bare flag, `{remove: true}` takes one away. Lists and all other values replace.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from tpucfg.paths import value_at
from tpucfg.text_format import dotted
from tpucfg.yamldoc import Document, KeyPath, Node

LAYERED: Final = ("capacity", "trainer", "targets")
"""The keys that can be set in every layer."""
_ARGS: Final = ("trainer", "args")
"""The path of the program's args, in which null is a value."""
PROBE: Final[KeyPath] = ("probe",)
"""The path of the layer that only probes have; its one layered key is `args`, which is short for `trainer.args`."""
_WITH_DEFAULT: Final = frozenset({("targets", "gke", "ttl")})
"""Settings whose null differs from an unset one, which has a default."""
REMOVE: Final = {"remove": True}
"""The value of an arg that takes away the flag of an earlier layer."""


class Layered:
    """A value merged from layers, which remembers the path of each of its parts in the spec."""

    __slots__ = ("_children", "path", "value")

    def __init__(
        self, value: Any, path: KeyPath, children: "Mapping[str, Layered] | None" = None
    ) -> None:
        self.value = value
        """Plain data, as if a single layer had it."""
        self.path = path
        """The path in the spec; a merged mapping has the path of its first layer."""
        self._children = children

    def children(self) -> "dict[str, Layered]":
        """Return the values of a mapping by key; nothing for any other value."""
        if self._children is not None:
            return dict(self._children)
        value = self.value if isinstance(self.value, dict) else {}
        return {key: Layered(item, (*self.path, key)) for key, item in value.items()}

    def source(self, path: KeyPath) -> KeyPath:
        """Return the path in the spec of a setting, given its path below this value; it need not be set."""
        if self._children is None or not path:
            return (*self.path, *path)
        child = self._children.get(str(path[0]))
        return child.source(path[1:]) if child else (*self.path, *path)

    def find(self, *keys: str) -> "Layered | None":
        """Return the value at the keys, or None if there is none."""
        value: Layered | None = self
        for key in keys:
            value = value.child(key) if value else None
        return value

    def child(self, key: str) -> "Layered | None":
        """Return the value of a key of a mapping, or None if there is none."""
        if self._children is not None:
            return self._children.get(key)
        has_key = isinstance(self.value, dict) and key in self.value
        return Layered(self.value[key], (*self.path, key)) if has_key else None

    def texts(self) -> "Iterator[tuple[KeyPath, str]]":
        """Yield every text in this value with its path in the spec."""
        if isinstance(self.value, str):
            yield self.path, self.value
        items = self.value if isinstance(self.value, list) else ()
        yield from (
            (self.source((index,)), item)
            for index, item in enumerate(items)
            if isinstance(item, str)
        )
        for child in () if items else self.children().values():
            yield from child.texts()


_UNSET: Final = Layered(None, ())
"""The value of a setting that no earlier layer has."""


def merge_layers(
    data: Mapping[str, Any], environment: str = "", size: str = "", *, is_probe: bool = False
) -> Layered:
    """Return the layered keys of an environment and a size, as a mapping.

    Args:
        data: The whole spec.
        environment: The environment's name; without one, only the layer at the top counts.
        size: The size; without one, no layer of a size counts.
        is_probe: True to add the arguments of a probe.
    """
    merged = Layered({}, ())
    for layer in layers_of(data, environment, size, is_probe=is_probe):
        merged = merge(merged, layer)
    return merged


def layer_paths(environment: str, size: str) -> tuple[KeyPath, ...]:
    """Return the paths of the layers, from the first to the one that wins."""
    return (
        (),
        ("environments", environment),
        ("overrides", size),
        ("environments", environment, "overrides", size),
    )


def layer_scope(layer: KeyPath) -> tuple[str | None, str | None]:
    """Return the environment and the size that the layer at a path is limited to; None for all of them."""
    names = dict(zip(layer[::2], map(str, layer[1::2]), strict=layer != PROBE))
    return names.get("environments"), names.get("overrides")


def present_layers(document: Document) -> tuple[KeyPath, ...]:
    """Return the path of everything in the document that may be a layer; the document may be invalid."""
    return _layers_below(document.root)


# Cached because each rule about layers asks for those of one document.
@lru_cache(maxsize=1)
def _layers_below(root: Node | None) -> tuple[KeyPath, ...]:
    data = root.value if root else None
    environments = _entries(data, ("environments",))
    layers = [(), *_entries(data, ("overrides",)), *environments]
    for environment in environments:
        layers += _entries(data, (*environment, "overrides"))
    if value_at(data, PROBE, _UNSET) is not _UNSET:
        layers.append(PROBE)
    return tuple(layers)


def _entries(data: Any, path: KeyPath) -> list[KeyPath]:
    """Return the paths of the entries of a mapping; nothing for any other value."""
    mapping = value_at(data, path)
    return [(*path, key) for key in mapping] if isinstance(mapping, dict) else []


def deletion_path(document: Document, path: KeyPath) -> KeyPath:
    """Return the path to delete with a setting: the largest mapping that contains nothing else in its layer."""
    while path[0] in ("environments", "overrides") and len(path) > 1:
        parent = document.node(path[:-1])
        if parent is None or len(parent.value) > 1:
            break
        path = path[:-1]
    return path


def deletion_help(document: Document, path: KeyPath) -> str:
    """Return the edit that deletes a setting, with the mappings that it would leave empty."""
    return f"delete {dotted(deletion_path(document, path))}"


def layers_of(
    data: Mapping[str, Any], environment: str, size: str, *, is_probe: bool = False
) -> Iterator[Layered]:
    """Yield the layers of an environment and a size that have a layered key, from the first to the one that wins.

    The arguments of a probe are the last layer of one.
    """
    for path in layer_paths(environment, size):
        part: Any = data
        for step in path:
            part = part.get(step, {}) if isinstance(part, dict) else {}
        if layer := {key: part[key] for key in LAYERED if key in part}:
            yield Layered(layer, path)
        if path == ("overrides", size) and "args" in part:
            yield args_layer(part["args"], path)
    if is_probe and (args := data.get("probe", {}).get("args")):
        yield args_layer(args, PROBE)


def args_layer(args: Any, path: KeyPath) -> Layered:
    """Return the layer of `overrides.<size>.args`, `probe.args` or `tune.args`, which are short for `trainer.args`."""
    trainer = Layered({"args": args}, (*path, "trainer"), {"args": Layered(args, (*path, "args"))})
    return Layered({"trainer": trainer.value}, path, {"trainer": trainer})


def merge(lower: Layered, upper: Layered, path: KeyPath = ()) -> Layered:
    """Return the upper value merged into the lower one, both at a path below a layer; the result has no removals."""
    if path == _ARGS and upper.path[:1] == PROBE and isinstance(upper.value, list):
        return _appended(lower, upper)
    if not isinstance(upper.value, dict):
        return upper
    first = lower if isinstance(lower.value, dict) else Layered({}, upper.path)
    children = first.children()
    for key, item in upper.children().items():
        if takes_away(item.value, path) and (*path, key) not in _WITH_DEFAULT:
            children.pop(key, None)
        else:
            # Merged even if it is new, because it may contain removals itself.
            children[key] = merge(children.get(key, _UNSET), item, (*path, key))
    return Layered({key: child.value for key, child in children.items()}, first.path, children)


def _appended(lower: Layered, upper: Layered) -> Layered:
    """Return the words of two lists of arguments as one, each with its own path."""
    lists = [layer for layer in (lower, upper) if isinstance(layer.value, list)]
    words = [
        Layered(word, layer.source((index,)))
        for layer in lists
        for index, word in enumerate(layer.value)
    ]
    return Layered(
        [word.value for word in words],
        lists[0].path,
        {str(index): word for index, word in enumerate(words)},
    )


def takes_away(value: Any, path: KeyPath) -> bool:
    """Return True if a value in the mapping at a path below a layer takes the setting of an earlier layer away."""
    return value == REMOVE if path == _ARGS else value is None
